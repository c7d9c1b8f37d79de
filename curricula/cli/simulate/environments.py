"""The environments that a preview is about: those of the mix, in the size of their sources where that is cheap."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from curricula.config import CurriculumConfig
from curricula.simulation import Law, fit_law

MOST = 20_000
"""Prompts that are simulated in all; larger mixes are scaled down."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What is simulated.

    Attributes:
        law: The world's, with the environments of the mix.
        levels: Lowest and highest level of each environment; (0, 0) where prompts have none.
        notes: What was assumed of the mix, a sentence each.
    """

    law: Law
    levels: tuple[tuple[int, int], ...]
    notes: tuple[str, ...]


def simulated(config: CurriculumConfig, base: Path, law: Law, prompts: int) -> Simulated:
    """Put the environments of a mix into a world.

    Args:
        config: The mix; one that names no environments gets those of the world.
        base: Folder of the mix, where relative paths start.
        law: Of the world.
        prompts: For environments whose size is not known.
    """
    if not config.environments:
        names = law.names
        note = f"The mix names no environments; those of the world stand in: {', '.join(names)}."
        return Simulated(
            fit_law(law, names, [prompts] * len(names), [None] * len(names)), ((0, 0),) * len(names), (note,)
        )
    names = tuple(config.environments)
    sizes = {name: source_size(environment.source, base) for name, environment in config.environments.items()}
    notes: list[str] = []
    if unknown := [name for name, size in sizes.items() if size is None]:
        notes.append(f"Not known without loading, taken as {prompts:,} prompts each: {', '.join(unknown)}.")
    counts = [size or prompts for size in sizes.values()]
    if (total := sum(counts)) > MOST:
        counts = [max(1, round(count * MOST / total)) for count in counts]
        notes.append(f"Scaled down from {total:,} prompts to {sum(counts):,}.")
    weights = [environment.weight for environment in config.environments.values()]
    levels = tuple(
        _levels(environment.source) or environment.levels or (0, 0) for environment in config.environments.values()
    )
    return Simulated(fit_law(law, names, counts, weights), levels, tuple(notes))


def source_size(source: Mapping[str, Any] | None, base: Path) -> int | None:
    """Prompts of a source as far as that costs nothing; None where they would have to be loaded.

    >>> source_size({"type": "reasoning_gym", "name": "chain_sum", "size": 50}, Path())
    50
    """
    if source is None:
        return None
    if source.get("type") == "reasoning_gym":
        size = source.get("size", 1000)
        return size if isinstance(size, int) and size > 0 else None
    path = base / str(source.get("path", ""))
    if source.get("split") not in (None, "train") or not path.is_file():
        return None
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet  # pyright: ignore[reportMissingTypeStubs]

        try:
            return int(cast(Any, parquet).read_metadata(path).num_rows) or None
        except (OSError, ValueError):  # pyarrow's error of a file that is no Parquet is a ValueError
            return None
    if path.suffix == ".jsonl":
        with path.open("rb") as lines:
            return sum(1 for line in lines if line.strip()) or None
    return None


def _levels(source: Mapping[str, Any] | None) -> tuple[int, int] | None:
    match source:
        case {"levels": [int(low), int(high)]} if low <= high:
            return low, high
        case _:
            return None
