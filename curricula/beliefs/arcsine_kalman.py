"""A Kalman filter of the arcsine of the square root of each prompt's pass rate."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.base import Assessment, Normaliser, PromptByPrompt
from curricula.beliefs.sums import rounds, window_sums
from curricula.pool import PromptPool
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_RIGHT = np.pi / 2.0
_PRIOR_VARIANCE = _RIGHT * _RIGHT / 12.0
_WHOLE = 1e-6  # successes this close to none or to all are: fractions are summed in floating point


class ArcsineKalman(PromptByPrompt):
    """Gaussian beliefs over psi = arcsin sqrt(p), where the noise of a group hardly depends on p.

    psi ~ N(mu, P), with the mean and the variance of the uniform distribution on [0, pi/2] before any evidence.
    A group with m successes of G rollouts is read as z with variance R:

        z = arcsin sqrt((m + 3/8) / (G + 3/4)),  R = 1 / (4 G + 2)
        at m = 0: z = 0, at m = G: z = pi / 2,   R = 1 / (2 G)

    and K = P / (P + R), mu <- mu + K (z - mu), P <- (1 - K) P. From one visit to the next, mu <- mu + v sin 2 mu and
    P <- P + Q: v is the progress that training makes at p = 1/2, Q the doubt that it adds. A prompt's clock is its
    own visits, so that nothing is done for the others.

    Args:
        pool: The prompts.
        drift: v, per visit.
        noise: Q, per visit.

    References:
        ARCUS, arXiv 2609.38018.
    """

    def __init__(self, pool: PromptPool, drift: float, noise: float) -> None:
        self.pool = pool
        self.drift, self.noise = drift, noise
        self.clear()

    def clear(self) -> None:
        """Forget all evidence."""
        size = len(self.pool)
        # mu - pi/4 and P, the latter 0 where there is no evidence: untouched pages cost nothing.
        self.shift = np.zeros(size, dtype=np.float32)
        self.variance = np.zeros(size, dtype=np.float32)
        self.visited = 0
        # Sum of the expected pass rates of each block.
        self.means_B: Floats = self.pool.block_sizes.astype(np.float64)
        self.means_B *= 0.5

    def seen(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows were visited, shape (M,)."""
        return self.variance[rows] > 0.0

    def posterior(self, rows: Rows) -> tuple[Floats, Floats]:
        """Each row's mu and P at its next visit, shape (M,) each."""
        variance = self.variance[rows].astype(np.float64)
        mean = self.shift[rows].astype(np.float64) + _RIGHT / 2.0
        return mean, np.where(variance > 0.0, variance, _PRIOR_VARIANCE)

    def assess(self, rows: Rows, group_size: int, normaliser: Normaliser) -> Assessment:
        """Expected pass rate and signal of rows (M,), in closed form.

        E[p] = (1 - exp(-2 P) cos 2 mu) / 2. Batch: (G - 1) E[p (1 - p)] = (G - 1) (1 - exp(-8 P) cos 4 mu) / 8.
        Group: the chance of a mixed group, 1 - [exp(-G mu^2 / a) + exp(-G (pi/2 - mu)^2 / a)] / sqrt(a) with
        a = 1 + 2 G P, which takes cos^2G psi for its Gaussian exp(-G psi^2).
        """
        mean, variance = self.posterior(rows)
        rates, none = _rate(mean, variance), np.zeros(rows.size)
        if normaliser == "batch":
            signals = (group_size - 1) * (1.0 - np.exp(-8.0 * variance) * np.cos(4.0 * mean)) / 8.0
            return Assessment(rates, signals, none)
        wide = 1.0 + 2.0 * group_size * variance
        alike = np.exp(-group_size * mean**2 / wide) + np.exp(-group_size * (_RIGHT - mean) ** 2 / wide)
        return Assessment(rates, np.maximum(1.0 - alike / np.sqrt(wide), 0.0), none)

    def moments(self, rows: Rows) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation of each row's pass rate, shape (M,) each; p = (1 - cos 2 psi) / 2."""
        mean, variance = self.posterior(rows)
        rates = _rate(mean, variance)
        square = (1.0 + np.exp(-8.0 * variance) * np.cos(4.0 * mean)) / 2.0
        return rates, np.sqrt(np.maximum(square - (1.0 - 2.0 * rates) ** 2, 0.0)) / 2.0

    def pool_means(self, windows_E2: Rows) -> Floats:
        """Mean of the beliefs over the eligible prompts of each environment, shape (E,); O(levels)."""
        sums, sizes = window_sums(np.stack([self.means_B, self.pool.block_sizes.astype(np.float64)]), windows_E2)
        return sums / sizes

    def update(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        """Learn K outcomes in order: successes (K,) of rollouts (K,) at rows (K,); a row may come more than once."""
        for places in rounds(rows):
            self._update_distinct(rows[places], passed[places], tried[places])

    def _update_distinct(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        mean, variance = self.posterior(rows)
        before = _rate(mean, variance)
        self.visited += int((~self.seen(rows)).sum())
        none, whole = passed <= _WHOLE, passed >= tried - _WHOLE
        read = np.arcsin(np.sqrt((np.clip(passed, 0.0, tried) + 0.375) / (tried + 0.75)))
        read = np.where(none, 0.0, np.where(whole, _RIGHT, read))
        spread = np.where(none | whole, 1.0 / (2.0 * tried), 1.0 / (4.0 * tried + 2.0))
        gain = variance / (variance + spread)
        mean += gain * (read - mean)
        # For v up to 1/2 the step keeps mu within [0, pi/2].
        mean += self.drift * np.sin(2.0 * mean)
        self.shift[rows] = mean - _RIGHT / 2.0
        self.variance[rows] = (1.0 - gain) * variance + self.noise
        np.add.at(self.means_B, self.pool.blocks[rows], _rate(*self.posterior(rows)) - before)

    def recount(self) -> None:
        """Take the sums over blocks anew."""
        rows = np.flatnonzero(self.variance)
        self.means_B = self.pool.block_sizes.astype(np.float64)
        self.means_B *= 0.5
        np.add.at(self.means_B, self.pool.blocks[rows], _rate(*self.posterior(rows)) - 0.5)

    def state_dict(self) -> dict[str, Any]:
        """Beliefs of the visited rows only, and the sums as they are."""
        rows = np.flatnonzero(self.variance)
        return {
            "type": "arcsine_kalman",
            "rows": rows,
            "shift": self.shift[rows],
            "variance": self.variance[rows],
            "means": self.means_B.copy(),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        rows = state.rows("rows", len(self.pool))
        shift = state.array("shift", np.float32, (rows.size,), low=-_RIGHT / 2.0 - 1e-6, high=_RIGHT / 2.0 + 1e-6)
        variance = state.array("variance", np.float32, (rows.size,), low=1e-30, high=1e6)
        means = state.array("means", np.float64, self.means_B.shape, low=-1e-6, high=len(self.pool))
        self.shift[rows], self.variance[rows] = shift, variance
        self.visited = rows.size
        self.means_B = means


def _rate(mean: Floats, variance: Floats) -> Floats:
    return (1.0 - np.exp(-2.0 * variance) * np.cos(2.0 * mean)) / 2.0
