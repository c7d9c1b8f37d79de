"""A head on the policy's own hidden state: the policy knows how hard a prompt is for it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula import CurriculaRuntimeError, CurriculaValueError, PromptPool
from curricula.predictors import Ridge
from curricula.predictors.params import whole
from curricula_transformers.hidden import HiddenStates

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class PolicyHead(Ridge):
    """Ridge regression of logit pass rates on the policy's hidden state at the end of the prompt, online.

    Hidden states are read from the policy as it is, when a prompt is predicted and when it is learned; nothing of the
    policy is kept, so a resumed run goes on exactly. Old visits fade, since their states were those of another policy.

    It runs in the thread of the trainer, which owns the policy, and costs a forward pass over each prompt: of the rows
    that are asked for at once, the first `budget` are predicted and the others get 0.

    Args:
        pool: With texts.
        budget: Prompts read for each request.
        batch_size: Prompts read at once.
        penalty: Prior precision of the coefficients, relative to that of a target.
        forgetting: What the past counts at each visit.

    Raises:
        ConfigError: A number out of bounds.
        CurriculaValueError: A pool without texts.

    References:
        Prompt curriculum learning, arXiv 2510.01135 (a value model that follows the policy).
    """

    foreground = True

    def __init__(
        self,
        pool: PromptPool,
        budget: int = 256,
        batch_size: int = 16,
        penalty: float = 30.0,
        forgetting: float = 0.9995,
    ) -> None:
        if pool.texts is None:
            raise CurriculaValueError(
                "policy_head: expected a pool with texts, for the policy to read; got one without"
            )
        self._states = HiddenStates(pool.texts, whole("batch_size", batch_size))
        self._budget = whole("budget", budget)
        super().__init__(self._states, penalty, forgetting)

    def bind(self, model: Any, tokenizer: Any) -> None:
        """Read hidden states from this model: a causal language model of transformers, wrapped by peft or not."""
        self._states.bind(model, tokenizer)

    def predict(self, rows: Rows) -> Floats:
        """Predicted logits of rows (M,), 0.0 beyond the budget."""
        predictions = np.zeros(rows.size)
        predictions[: self._budget] = super().predict(rows[: self._budget])
        return predictions

    def learn(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Read K visited prompts and add them to the sums."""
        if not self._states.bound:
            raise CurriculaRuntimeError(
                "policy_head: expected a policy to read hidden states from; got none; attach the curriculum to a "
                "trainer, or call bind(model, tokenizer)"
            )
        super().learn(rows, passed, tried, offsets)
