"""Sums of posteriors over blocks of prompts, kept without a pass over prompts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.grid import NODES
from curricula.beliefs.shapes import BASE, BINS
from curricula.beliefs.sums import window_sums
from curricula.pool import PromptPool
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Likelihoods = NDArray[np.float32]

_KEPT = 0.98
_ENVIRONMENT_PROMPTS = 5.0


class Totals:
    """What the prompts of each block sum to.

    - Of visited prompts, a sum of posteriors under a prior that never changes, from the evidence as it is stored: what
      a prompt added can be taken out again exactly, at any later time, so that no error grows. What the learned prior
      and ageing change about it is the mean difference among the prompts that the prior is fitted on, by block, shrunk
      to their environment's by 5 pseudo-prompts.
    - Of prompts never visited, the prior in the bins that samples of them were lately placed in.
    """

    def __init__(self, pool: PromptPool) -> None:
        self.pool = pool
        blocks = len(pool.block_sizes)
        self.sums_BN: Floats = np.zeros((blocks, NODES))
        self.visited_B: Floats = np.zeros(blocks)
        self.placed_BP: Floats = np.zeros((blocks, BINS + 1))
        self.change_BN: Floats = np.zeros((blocks, NODES))

    def replace(self, rows: Rows, fresh: NDArray[np.bool_], before_MN: Likelihoods, after_MN: Likelihoods) -> None:
        """Take in new likelihoods of rows (M,) for those they had before, unless they are fresh."""
        blocks = self.pool.blocks[rows]
        np.add.at(self.sums_BN, blocks, _plain(after_MN) - np.where(fresh[:, None], 0.0, _plain(before_MN)))
        np.add.at(self.visited_B, blocks[fresh], 1.0)

    def correct(self, rows: Rows, likelihood_MN: Likelihoods, posterior_MN: Floats) -> None:
        """Learn from a sample of visited rows (M,) how far their posteriors are from those under the fixed prior."""
        count, codes = len(self.pool.environments), self.pool.block_codes
        change_MN = posterior_MN - _plain(likelihood_MN)
        change_BN, change_EN = np.zeros_like(self.sums_BN), np.zeros((count, NODES))
        np.add.at(change_BN, self.pool.blocks[rows], change_MN)
        np.add.at(change_EN, codes, change_BN)
        number_B = np.bincount(self.pool.blocks[rows], minlength=len(codes)).astype(np.float64)
        change_EN /= np.maximum(np.bincount(codes, number_B, count), 1.0)[:, None]
        pseudo = _ENVIRONMENT_PROMPTS
        self.change_BN = (change_BN + pseudo * change_EN[codes]) / (number_B + pseudo)[:, None]

    def place(self, rows: Rows, bins: Rows) -> None:
        """A sample of unvisited rows (M,) fell into these bins."""
        self.placed_BP *= _KEPT
        np.add.at(self.placed_BP, (self.pool.blocks[rows], bins), 1.0)

    def means(self, windows_E2: Rows, rate_AN: Floats, prior_EPN: Floats, block_bins: Rows) -> Floats:
        """Mean pass rate over the blocks in each environment's window, shape (E,); O(levels).

        Args:
            windows_E2: First block and one past the last.
            rate_AN: Pass rate expected at each node, of visited and of new prompts of each environment by turns.
            prior_EPN: Prior in each bin.
            block_bins: Bin of prompts of each block that were never placed.
        """
        codes, sizes = self.pool.block_codes, self.pool.block_sizes.astype(np.float64)
        rate_BN = rate_AN[::2][codes]
        visited = ((self.sums_BN + self.visited_B[:, None] * self.change_BN) * rate_BN).sum(axis=1)
        rate_EP = np.einsum("epn,en->ep", prior_EPN, rate_AN[1::2])
        never = rate_EP[codes, block_bins]
        placed = self.placed_BP.sum(axis=1)
        known = placed > 0.0
        never[known] = (self.placed_BP * rate_EP[codes]).sum(axis=1)[known] / placed[known]
        sums = visited + (sizes - self.visited_B) * never
        total, count = window_sums(np.stack([sums, sizes]), windows_E2)
        return np.clip(total / count, 0.0, 1.0)

    def state_dict(self) -> dict[str, Any]:
        """All of it."""
        return {
            "sums": self.sums_BN.copy(),
            "visited": self.visited_B.copy(),
            "placed": self.placed_BP.copy(),
            "change": self.change_BN.copy(),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        size = len(self.pool)
        sums = state.array("sums", np.float64, self.sums_BN.shape, low=-1e-6, high=size)
        visited = state.array("visited", np.float64, self.visited_B.shape, high=size)
        placed = state.array("placed", np.float64, self.placed_BP.shape, high=1e18)
        self.change_BN = state.array("change", np.float64, self.change_BN.shape, low=-1.0, high=1.0)
        self.sums_BN, self.visited_B, self.placed_BP = sums, visited, placed


def _plain(likelihood_MN: Likelihoods) -> Floats:
    posterior_MN = likelihood_MN * BASE
    return posterior_MN / posterior_MN.sum(axis=1, keepdims=True)
