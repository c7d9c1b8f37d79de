"""What groups said of each prompt: 28 bytes, read and written in one place of memory."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.grid import NODES
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Rows = NDArray[np.int64]

_RECORD = np.dtype([("fall", np.uint8, (NODES,)), ("ability", np.float16), ("word", np.uint32)])
_STEP = 0.05
_LIKELIHOOD: Singles = np.exp(-_STEP * np.arange(256), dtype=np.float32)
_LEAST = float(np.exp(-_STEP * 255))
MOST_CLOCK = (1 << 24) - 1


class Evidence:
    """Likelihood of the deviation of each of N prompts, given its groups.

    At each node, how far the log-likelihood lies below its maximum, in steps of .05 up to 12.75: bounded, so no
    amount of evidence is beyond being overturned. With it the ability and the time of the last group, and the bin of
    the prompt's predicted difficulty. Pages that were never written cost nothing.
    """

    def __init__(self, size: int) -> None:
        self.records: NDArray[Any] = np.zeros(size, dtype=_RECORD)

    def read(self, rows: Rows) -> "Held":
        """What is held of rows (M,)."""
        records = self.records.take(rows)
        word = records["word"]
        return Held(
            _LIKELIHOOD.take(records["fall"]),
            records["ability"].astype(np.float64),
            (word >> 8).astype(np.int64),
            (word & 255).astype(np.int64),
        )

    def seen(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows have evidence, shape (M,)."""
        return self.records.take(rows)["word"] > 255

    def write(self, rows: Rows, likelihood_KN: Floats, ability_K: Floats, clock_K: Rows, bin_K: Rows) -> Singles:
        """Replace what is held of distinct rows (K,): likelihoods (K, nodes) of any scale, ability, time and bin.

        Returns:
            The likelihoods as they will be read, shape (K, nodes).
        """
        peak = likelihood_KN.max(axis=1, keepdims=True)
        fall = np.log(np.maximum(likelihood_KN / peak, _LEAST)) / -_STEP
        records = np.empty(rows.size, dtype=_RECORD)
        records["fall"] = np.rint(fall)
        records["ability"] = ability_K
        records["word"] = (np.minimum(clock_K, MOST_CLOCK) << 8) | bin_K
        self.records[rows] = records
        return _LIKELIHOOD.take(records["fall"])

    def place(self, rows: Rows, bins: Rows) -> None:
        """Set the bin of rows (M,) that have no evidence yet."""
        word = self.records["word"]
        unseen = word[rows] < 256
        word[rows[unseen]] = bins[unseen]

    def state_dict(self) -> dict[str, Any]:
        """The rows that hold anything."""
        rows = np.flatnonzero(self.records["word"])
        held = self.records[rows]
        columns = {"fall": held["fall"], "ability": held["ability"], "word": held["word"]}
        return {"rows": rows} | {name: np.ascontiguousarray(column) for name, column in columns.items()}

    def load(self, state: Reader) -> int:
        """Take over a saved state; the number of rows with evidence."""
        rows = state.rows("rows", len(self.records))
        held = np.empty(rows.size, dtype=_RECORD)
        held["fall"] = state.array("fall", np.uint8, (rows.size, NODES))
        held["ability"] = state.array("ability", np.float16, (rows.size,), low=-60.0, high=60.0)
        held["word"] = state.array("word", np.uint32, (rows.size,), low=1)
        state.ensure("fall", "a likelihood whose maximum is at some node", bool((held["fall"].min(axis=1) == 0).all()))
        self.records[rows] = held
        return int((held["word"] > 255).sum())


class Held(NamedTuple):
    """What is held of M prompts: likelihood (M, nodes), ability and time of the last group, bin; (M,) each.

    Time 0 says that there was no group; the likelihood is flat then.
    """

    likelihood_MN: Singles
    ability_M: Floats
    clock_M: Rows
    bin_M: Rows
