"""A simulated learner: prompts drawn from a law, rollouts by chance, ability that grows with what is trained on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.pool import PromptPool
from curricula.simulation.law import Floats, Law, sigmoid

Rows = NDArray[np.int64]

TOKENS_NOISE = 0.25
"""Standard deviation of the logarithm of a rollout's tokens around its prompt's mean."""

_FILLERS = 300


class World:
    """One sample of a law: its prompts, and the learner's abilities as they are now.

    Two worlds of the same law and seed have the same prompts and the same drift, whatever is trained on: rules are
    compared on equal ones.

    Attributes:
        law: What was sampled.
        codes_N: Shape (N,), environment of each row.
        difficulty_N: Shape (N,), in logits.
        feature_N: Shape (N,), of mean 0 and variance 1 in each environment; correlated with difficulty.
        unlearnable_N: Shape (N,), whether the pass rate is 0 for ever.
        cost_N: Shape (N,), mean tokens of a rollout.
        ability_E: Shape (E,), in logits; 0 at the start.
        steps: Batches trained on.
    """

    def __init__(self, law: Law, seed: int = 0) -> None:
        self.law = law
        draws, self._drifts, self._wanders = (
            np.random.Generator(np.random.PCG64(child)) for child in np.random.SeedSequence(seed).spawn(3)
        )
        sizes = [environment.prompts for environment in law.environments]
        self.codes_N: Rows = np.repeat(np.arange(len(sizes)), sizes)
        columns: list[tuple[NDArray[Any], ...]] = []
        for environment in law.environments:
            size, r = environment.prompts, environment.correlation
            weights, means, stds = (np.array(column) for column in zip(*environment.difficulty, strict=True))
            part = draws.choice(len(weights), size, p=weights / weights.sum())
            difficulty = draws.normal(means[part], stds[part])
            standard = (difficulty - environment.centre) / environment.scale
            feature = r * standard + np.sqrt(1.0 - r * r) * draws.standard_normal(size)
            spread = environment.tokens_spread
            cost = environment.tokens * np.exp(draws.normal(-0.5 * spread * spread, spread, size))
            columns.append((difficulty, feature, draws.random(size) < environment.unlearnable, cost))
        joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
        self.difficulty_N, self.feature_N, self.unlearnable_N, self.cost_N = joined
        self._words_N = draws.integers(_FILLERS, size=(len(self), 4))
        self.ability_E: Floats = np.zeros(len(sizes))
        self.visits_N: Rows = np.zeros(len(self), dtype=np.int64)
        self.steps = 0

    def __len__(self) -> int:
        return len(self.codes_N)

    def pool(self, texts: bool = True, levels: Rows | None = None) -> PromptPool:
        """The prompts as a curriculum sees them: environments, the feature as a column, and texts that carry it.

        A text has a word for the feature rounded to 1, one for it rounded to 1/4, and four words that say nothing.

        Args:
            texts: Whether to write texts.
            levels: Shape (N,), levels of the prompts, where they have any.
        """
        names = np.array(self.law.names)[self.codes_N]
        prompts = [self._text(row) for row in range(len(self))] if texts else None
        keys = np.arange(len(self))
        features = self.feature_N[:, None].astype(np.float32)
        return PromptPool(names, keys=keys, texts=prompts, features=features, levels=levels)

    def pass_rates(self, rows: Rows | None = None) -> Floats:
        """True pass rate of rows (M,), or of all, as of now."""
        at: Any = slice(None) if rows is None else rows
        logit = self.ability_E[self.codes_N[at]] - self.difficulty_N[at] + self.law.bonus(self.visits_N[at])
        return np.where(self.unlearnable_N[at], 0.0, sigmoid(logit))

    def levels(self, spans: Sequence[tuple[int, int]]) -> Rows:
        """Levels low to high of each environment's prompts, shape (N,): equal parts of them, by difficulty."""
        level_N = np.zeros(len(self), dtype=np.int64)
        for code, (low, high) in enumerate(spans):
            rows = np.flatnonzero(self.codes_N == code)
            rank = np.argsort(np.argsort(self.difficulty_N[rows]))
            level_N[rows] = low + rank * (high - low + 1) // len(rows)
        return level_N

    def rollouts(self, rows: Rows, group_size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """One group for each of K rows.

        Args:
            rows: Shape (K,).
            group_size: G.
            rng: The only source of randomness.

        Returns:
            Successes (K, G), each 0 or 1; tokens (K, G), whole numbers from 1.
        """
        shape = (len(rows), group_size)
        successes_KG = (rng.random(shape) < self.pass_rates(rows)[:, None]).astype(np.float64)
        noise = np.exp(rng.normal(-0.5 * TOKENS_NOISE**2, TOKENS_NOISE, shape))
        return successes_KG, np.maximum(np.rint(self.cost_N[rows, None] * noise), 1.0)

    def train(self, rows: Rows, successes_KG: Floats, groups: int | None = None) -> None:
        """One step on K groups; ability grows by the signal that was observed, then drifts.

        Args:
            rows: Shape (K,).
            successes_KG: Shape (K, G), what the rollouts gave.
            groups: B, what the signal is averaged over; K where it is not given.
        """
        law, count = self.law, len(self.law.environments)
        rate_K = successes_KG.mean(axis=1)
        signal_K = rate_K * (1.0 - rate_K)
        codes_K = self.codes_N[rows]
        signal_E = np.bincount(codes_K, signal_K, count) / (len(rows) if groups is None else groups)
        kept_E = np.bincount(codes_K[signal_K > 0.0], minlength=count)
        self.ability_E = law.grow(self.ability_E, signal_E, kept_E)
        np.add.at(self.visits_N, rows[signal_K > 0.0], 1)
        self.steps += 1
        for fall in law.regressions:
            if fall.step == self.steps:
                self.ability_E[fall.environment] -= fall.amount
        # Drawn whether used or not, so that worlds of one seed drift alike.
        self.ability_E = self.ability_E + law.drift * self._drifts.standard_normal(count)
        if law.prompt_drift > 0.0:
            self.difficulty_N = self.difficulty_N + law.prompt_drift * self._wanders.standard_normal(len(self))

    def held_out(self) -> Floats:
        """Expected success on prompts of the same law that were never trained on, shape (E,)."""
        return self.law.expect("success", self.ability_E, self.steps * self.law.prompt_drift**2)

    def _text(self, row: int) -> str:
        value = float(self.feature_N[row])
        fillers = " ".join(f"word{word}" for word in self._words_N[row].tolist())
        name = self.law.names[int(self.codes_N[row])]
        return f"{name} about{round(value)} near{round(4 * value)} {fillers} {row}"
