"""Reading a trainer's data set: its environments, the keys of its rows, and fresh copies for the rollouts."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Audio, ClassLabel, Dataset, Image, Video
from numpy.typing import NDArray

from curricula import CurriculaValueError, CurriculumConfig, PromptPool
from curricula.columns import narrowed
from curricula.keys import row_key
from curricula_trl.keycache import cached_keys
from curricula_trl.tables import coded, hash_rows, whole_column
from curricula_trl.texts import COLUMN, Texts

_LEVEL_COLUMN = "level"
_ONLY_ENVIRONMENT = "all"
_FORMAT = 1
_CHECKED = 16


class Rows:
    """The rows of a map-style data set, as the curriculum sees them.

    Attributes:
        dataset: The data set itself; rollouts get its rows untouched.
    """

    def __init__(self, dataset: Any, config: CurriculumConfig) -> None:
        self.dataset = dataset
        self._config = config
        self._is_hub = isinstance(dataset, Dataset)
        self._columns = list(dataset.column_names) if self._is_hub else list(dataset[0])
        self._environment = config.environment_column if config.environment_column in self._columns else None
        self._stable = [name for name in self._columns if not self._is_media(name)]
        self._plain = dataset.with_format("arrow").select_columns(self._stable) if self._is_hub else None
        self._read_ahead: dict[int, dict[str, Any]] = {}
        self._check_columns()

    def __len__(self) -> int:
        return len(self.dataset)

    def pool(self) -> PromptPool:
        """Reads environments, keys, and levels where there are any; keys that are hashes are kept for later runs."""
        has_levels = _LEVEL_COLUMN in self._columns and any(
            environment.levels is not None for environment in self._config.environments.values()
        )
        if self._plain is not None and len(self):
            return self._table_pool(self._plain, has_levels)
        environments: list[str] = []
        keys: list[str] = []
        levels: list[int] = []
        for number in range(len(self)):
            row = self.dataset[number]
            environment = self._environment_of(row, number)
            environments.append(environment)
            keys.append(self._key_of(row, environment, number))
            if has_levels:
                levels.append(self._level_of(row, number))
        return PromptPool(environments, keys, self._texts(), levels=np.array(levels) if has_levels else None)

    def _table_pool(self, table: Dataset, has_levels: bool) -> PromptPool:
        """The pool of a table, read column by column."""
        names, codes = self._coded_environments(table)
        environments = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names))
        levels = self._levels(whole_column(table, _LEVEL_COLUMN)) if has_levels else None
        if self._config.key is not None:
            return PromptPool(environments, self._named_keys(table, self._config.key), self._texts(), levels=levels)
        # A column's content is the fingerprint's business; which columns make up a key, and whose prompt it is, ours.
        told = [_FORMAT, self.dataset._fingerprint, len(self), sorted(self._stable), self._environment, names]

        def check(digests: NDArray[np.uint8]) -> bool:
            some = np.unique(np.linspace(0, len(self) - 1, _CHECKED).astype(np.int64))
            return [digests[row].tobytes().hex() for row in some] == self.keys(some.tolist())

        digests = cached_keys(json.dumps(told), len(self), lambda keys: hash_rows(table, names, codes, keys), check)
        return PromptPool(environments, digests, self._texts(), levels=levels)

    def _texts(self) -> Texts | None:
        """The prompts for predictors, where they are stored as such."""
        if COLUMN not in self._stable:
            return None
        return Texts(self.dataset if self._plain is None else self._plain.select_columns([COLUMN]))

    def _coded_environments(self, table: Dataset) -> tuple[list[str], NDArray[Any]]:
        """Names, and the code of each row's; rows without a name are refused."""
        if self._environment is None:
            return [self._environment_of({}, 0)], np.zeros(len(self), dtype=np.int16)
        found, codes = coded(whole_column(table, self._environment))
        if (codes < 0).any():
            self._environment_of({self._environment: None}, int(np.argmax(codes < 0)))
        names = list(map(str, found))
        for code, value in enumerate(found):
            if (codes == code).any():
                names[code] = self._environment_of({self._environment: value}, int(np.argmax(codes == code)))
        return names, narrowed(codes, len(names))

    def _named_keys(self, table: Dataset, name: str) -> Any:
        column = whole_column(table, name)
        if column.null_count:
            self._key_of({name: None}, "", int(np.argmax(np.asarray(column.is_null()))))
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind):
            return column
        return [str(value) for value in column.to_pylist()]

    def _levels(self, column: Any) -> NDArray[Any]:
        if pa.types.is_integer(column.type):
            return column.fill_null(0).to_numpy()
        values = column.to_pylist()
        return np.array([self._level_of({_LEVEL_COLUMN: value}, number) for number, value in enumerate(values)])

    def keys(self, indices: Sequence[int]) -> list[str]:
        """Keys of some rows, read again from the data set; a duplicate's ordinal is not part of them."""
        if self._plain is not None:
            rows: Sequence[Mapping[str, Any]] = self._plain[list(indices)].to_pylist()
        else:
            rows = [self.dataset[index] for index in indices]
        return [
            self._key_of(row, self._environment_of(row, index), index) for index, row in zip(indices, rows, strict=True)
        ]

    def fetch(
        self, indices: Sequence[int], copies: Sequence[int], columns: Sequence[str] | None
    ) -> list[dict[str, Any]]:
        """Reads each row once and returns a dict of its own for every rollout; images are shared, not decoded again.

        Args:
            indices: Rows, one for each group.
            copies: How many rollouts of each group there are.
            columns: Columns to keep; None keeps all.
        """
        rollouts: list[dict[str, Any]] = []
        ahead, self._read_ahead = self._read_ahead, {}
        read = [ahead[index] for index in indices] if ahead.keys() >= set(indices) else self._read(indices)
        for row, count in zip(read, copies, strict=True):
            if columns is not None:
                row = {name: value for name, value in row.items() if name in columns}
            if any(isinstance(value, (dict, list)) for value in row.values()):
                rollouts += [{name: _fresh(value) for name, value in row.items()} for _ in range(count)]
            else:
                rollouts += [row.copy() for _ in range(count)]
        return rollouts

    def read_ahead(self, indices: Sequence[int]) -> None:
        """Reads rows beside a step, for the next `fetch`; a format of the user's own is left to that.

        What is wrong with one is raised there, too.
        """
        self._read_ahead = {}
        if self._is_plain:
            with suppress(Exception):
                self._read_ahead = dict(zip(indices, self._read(indices), strict=True))

    @property
    def _is_plain(self) -> bool:
        return self._is_hub and self.dataset.format["type"] is None

    def _read(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        if self._is_plain:
            batch = self.dataset[list(indices)]
            return [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        return [dict(self.dataset[index]) for index in indices]

    def _is_media(self, name: str) -> bool:
        # Decoding a million images to name their rows would take longer than the run.
        return self._is_hub and isinstance(self.dataset.features[name], (Image, Audio, Video))

    def _check_columns(self) -> None:
        wanted = self._config.environment_column
        # The default written out, as in a resolved mix, is no claim that there is such a column.
        default = CurriculumConfig.model_fields["environment_column"].default
        if self._environment is None and wanted != default:
            raise CurriculaValueError(
                f"environment_column: the data set has no column {wanted!r}; it has {', '.join(self._columns)}"
            )
        if self._is_hub and self._environment is None and len(self.dataset) and wanted in self.dataset[0]:
            raise CurriculaValueError(
                f"environment_column: {wanted!r} is made by a transform, row by row, and the curriculum reads columns "
                "as they are stored; make it with dataset.map"
            )
        declared = list(self._config.environments)
        if self._environment is None and len(declared) > 1:
            raise CurriculaValueError(
                f"environments: the mix names {', '.join(declared[:5])}, but the data set has no column {wanted!r} "
                f"that says which prompt belongs to which (it has {', '.join(self._columns)}); add it, or name the "
                "column that does, environment_column: NAME"
            )
        if self._config.key is not None and self._config.key not in self._stable:
            raise CurriculaValueError(
                f"key: the data set has no column {self._config.key!r}; it has {', '.join(self._stable)}"
            )

    def _environment_of(self, row: Mapping[str, Any], number: int) -> str:
        if self._environment is None:
            # A mix that declares one environment names the only one there is.
            declared = list(self._config.environments)
            return declared[0] if len(declared) == 1 else _ONLY_ENVIRONMENT
        value = row[self._environment]
        if value is None or value == "":
            raise CurriculaValueError(
                f"row {number}: column {self._environment!r} names no environment (it holds {value!r}); fill it in"
            )
        feature = self.dataset.features[self._environment] if self._is_hub else None
        if value != value or (isinstance(feature, ClassLabel) and value < 0):  # NaN, or a label that was never given
            raise CurriculaValueError(f"row {number}: column {self._environment!r} names no environment; fill it in")
        return str(feature.int2str(value)) if isinstance(feature, ClassLabel) else str(value)

    def _key_of(self, row: Mapping[str, Any], environment: str, number: int) -> str:
        if self._config.key is None:
            return row_key(row, environment, self._stable)
        value = row[self._config.key]
        if value is None:
            raise CurriculaValueError(
                f"row {number}: key column {self._config.key!r} is empty; every prompt needs a key"
            )
        return str(value)

    def _level_of(self, row: Mapping[str, Any], number: int) -> int:
        value = row[_LEVEL_COLUMN]
        if value is None:
            return 0
        if not isinstance(value, (int, np.integer)):
            raise CurriculaValueError(f"row {number}: column 'level' holds {value!r}; expected a whole number")
        return int(value)


def _fresh(value: Any) -> Any:
    """Copies containers, since hosts edit prompts in place; what they contain is shared."""
    if isinstance(value, dict):
        return {key: _fresh(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_fresh(inner) for inner in value]
    return value
