"""Hidden states of a causal language model at the end of prompts, read without leaving a trace."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from curricula.predictors.texts import read_texts

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_LONGEST = 2048
_MOST = 1e4


class HiddenStates:
    """The last layer's state at the last token of a prompt, as `Vectors`.

    Of longer prompts the last 2,048 tokens count. The model is read in evaluation mode without gradients, draws no
    random numbers, and has each module's mode back afterwards.
    """

    def __init__(self, texts: Any, batch_size: int) -> None:
        self._texts, self._batch_size = texts, batch_size
        self._model: Any = None
        self._tokenizer: Any = None

    @property
    def bound(self) -> bool:
        """Whether there is a model."""
        return self._model is not None

    def bind(self, model: Any, tokenizer: Any) -> None:
        """Read from this model from now on; a processor's own tokenizer is taken."""
        self._model, self._tokenizer = model, getattr(tokenizer, "tokenizer", tokenizer)

    def matrix(self, rows: Rows) -> Floats:
        """Hidden states of rows (M,), shape (M, D)."""
        texts = read_texts(self._texts, rows.tolist())
        parts = [texts[start : start + self._batch_size] for start in range(0, len(texts), self._batch_size)]
        with _undisturbed(self._model):
            return np.concatenate([self._read(part) for part in parts])

    def _read(self, texts: list[str]) -> Floats:
        ids = [list(self._tokenizer(text)["input_ids"])[-_LONGEST:] or [0] for text in texts]
        longest = max(map(len, ids))
        device = next(self._model.parameters()).device
        # Padded on the right, where causal attention does not look, whatever the tokenizer's own side is.
        tokens = torch.tensor([part + [0] * (longest - len(part)) for part in ids], device=device)
        mask = torch.tensor([[1] * len(part) + [0] * (longest - len(part)) for part in ids], device=device)
        output = self._model(
            input_ids=tokens, attention_mask=mask, output_hidden_states=True, use_cache=False, logits_to_keep=1
        )
        last = output.hidden_states[-1][torch.arange(len(ids)), mask.sum(dim=1) - 1]
        return np.nan_to_num(last.float().cpu().numpy().astype(np.float64)).clip(-_MOST, _MOST)


@contextmanager
def _undisturbed(model: Any) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
