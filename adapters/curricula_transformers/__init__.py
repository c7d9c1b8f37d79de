"""Predictors of difficulty that read prompts with a transformer: a frozen encoder, and the policy itself."""

from curricula.versions import require

require("transformers")

from curricula_transformers.encoder import Embeddings, FrozenEncoder  # noqa: E402  hosts are checked first
from curricula_transformers.head import PolicyHead  # noqa: E402

__all__ = ["Embeddings", "FrozenEncoder", "PolicyHead"]
