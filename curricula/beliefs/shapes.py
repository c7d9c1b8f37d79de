"""How the deviations of an environment's prompts are spread, learned from those that were visited."""

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.grid import DEVIATIONS, NODES, shift
from curricula.stateful import Reader

Floats = NDArray[np.float64]

BINS = 16
"""Bins of the predicted difficulty, in equal parts of the prompts; bin 0 holds prompts without a prediction."""

CENTRES: Floats = np.array([0.0, *(NormalDist().inv_cdf((place + 0.5) / BINS) for place in range(BINS))])

_HOPELESS, _WIDTH = 0.05, 2.5
_NORMAL: Floats = np.exp(-0.5 * (DEVIATIONS / _WIDTH) ** 2)
BASE: Floats = np.concatenate([[_HOPELESS], (1.0 - _HOPELESS) * _NORMAL / _NORMAL.sum()])
"""Prior before anything was learned: a normal distribution with an atom at "never solved"."""

_SHAPE_PROMPTS, _BIN_PROMPTS, _SLOPE_PROMPTS = 30.0, 10.0, 10.0
_LEAST = 1e-6


class Shapes:
    """Prior of the deviation of a prompt, given its environment and the bin of its prediction.

    Histograms on the grid, each shrunk to a wider one: that of an environment to the pooled one by 30
    pseudo-prompts, that of all to a normal distribution with an atom of .05 at "never solved" by 30 as well, and
    that of a bin, by 10, to its environment's, moved by slope x centre of the bin. The slope is the regression of
    expected deviations on the centres, so a prediction is trusted as far as prompts turned out as predicted: one that
    says nothing has a slope of 0 and bins alike.

    The histograms hold the expected counts of visited prompts under their posteriors (the E step of EM); prompts
    chosen for their prediction and their own outcomes leave them unbiased, because both are conditioned on.
    """

    def __init__(self, environments: int) -> None:
        self.counts_EBN: Floats = np.zeros((environments, BINS + 1, NODES))
        self.slope_E: Floats = np.zeros(environments)
        self._build()

    def refit(self, codes_M: NDArray[np.int64], bins_M: NDArray[np.int64], posterior_MN: Floats) -> None:
        """Take the posteriors of visited prompts as what is known of the environments.

        Args:
            codes_M: Environment of each.
            bins_M: Bin of each.
            posterior_MN: Shape (M, nodes), each of sum 1.
        """
        count = len(self.slope_E)
        places = codes_M * (BINS + 1) + bins_M
        flat = np.zeros((count * (BINS + 1), NODES))
        np.add.at(flat, places, posterior_MN)
        self.counts_EBN = flat.reshape(self.counts_EBN.shape)
        # Deviations say nothing of prompts that are never solved.
        weight_EB = self.counts_EBN[:, 1:, 1:].sum(axis=2)
        sums_EB = self.counts_EBN[:, 1:, 1:] @ DEVIATIONS
        total_E = np.maximum(weight_EB.sum(axis=1), 1e-9)
        centred = CENTRES[1:] - (weight_EB @ CENTRES[1:] / total_E)[:, None]
        products = (centred * (sums_EB - weight_EB * (sums_EB.sum(axis=1) / total_E)[:, None])).sum(axis=1)
        squares = (weight_EB * centred**2).sum(axis=1)
        pooled = products.sum() / (squares.sum() + _SLOPE_PROMPTS)
        self.slope_E = (products + _SLOPE_PROMPTS * pooled) / (squares + _SLOPE_PROMPTS)
        self._build()

    def _build(self) -> None:
        count = len(self.slope_E)
        moves = self.slope_E[:, None] * CENTRES
        if self.counts_EBN[:, 1:].any():
            aligned = shift(self.counts_EBN.reshape(-1, NODES), -moves.reshape(-1)).reshape(self.counts_EBN.shape)
        else:
            aligned = self.counts_EBN
        whole_EN = aligned.sum(axis=1)
        pooled = _shrunk(whole_EN.sum(axis=0), BASE, _SHAPE_PROMPTS)
        environment_EN = _shrunk(whole_EN, pooled, _SHAPE_PROMPTS)
        expected = np.repeat(environment_EN, BINS + 1, axis=0)
        if self.slope_E.any():
            expected = shift(expected, moves.reshape(-1))
        shapes = _shrunk(self.counts_EBN.reshape(-1, NODES), expected, _BIN_PROMPTS)
        shapes = np.maximum(shapes, _LEAST)
        self.prior_EBN: Floats = (shapes / shapes.sum(axis=1, keepdims=True)).reshape(count, BINS + 1, NODES)
        # The same, by environment * bins + bin, for posteriors of many prompts.
        self.prior_PN = self.prior_EBN.reshape(-1, NODES).astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        """Counts and slopes; priors follow from them."""
        return {"counts": self.counts_EBN.copy(), "slope": self.slope_E.copy()}

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        self.counts_EBN = state.array("counts", np.float64, self.counts_EBN.shape, high=1e9)
        self.slope_E = state.array("slope", np.float64, self.slope_E.shape, low=-100.0, high=100.0)
        self._build()


def _shrunk(counts: Floats, towards: Floats, prompts: float) -> Floats:
    return (counts + prompts * towards) / (counts.sum(axis=-1, keepdims=True) + prompts)
