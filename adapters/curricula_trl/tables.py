"""A data set's table read column by column: nothing is made for a row but its key."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset
from datasets.utils import tqdm
from numpy.typing import NDArray

from curricula.columns import decode_arrow
from curricula.keys import DIGEST_BYTES, row_digests

_BATCH = 10_000
_PATIENCE = 2.0  # seconds before a bar is shown


def whole_column(table: Dataset, name: str) -> Any:
    """A column as it lies in memory or in a mapped file; only a data set that picks rows has it copied."""
    return table.select_columns([name])[:][name]


def coded(column: Any) -> tuple[list[Any], NDArray[Any]]:
    """Distinct values of a column, and the code of each row's, shape (N,); -1 where there is none."""
    try:
        return decode_arrow(column)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # lists and mappings
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return decode_arrow(pa.array(texts, pa.string()))


def hash_rows(table: Dataset, names: Sequence[str], codes: NDArray[Any], keys: NDArray[np.uint8]) -> None:
    """Write the key of each row, a hash of its environment and all columns, into an array of shape (N, 16).

    A bar shows how far it is, where the data set's own are shown.
    """
    start = 0
    with tqdm(total=len(keys), desc="Hashing prompts", unit=" prompts", delay=_PATIENCE) as progress:
        for batch in table.iter(batch_size=_BATCH):
            stop = start + batch.num_rows
            columns = {name: batch.column(name).to_pylist() for name in batch.column_names}
            owners: list[int] = codes[start:stop].tolist()
            digests = row_digests(columns, [names[owner] for owner in owners])
            keys[start:stop] = np.frombuffer(digests, np.uint8).reshape(-1, DIGEST_BYTES)
            progress.update(stop - start)
            start = stop
