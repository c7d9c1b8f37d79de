"""Sets of curves, one for each draw of a posterior or each candidate of a search."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from curricula.scaling.laws import Floats, power_law, sigmoid


class Family(Protocol):
    """n curves of one law."""

    @property
    def weight(self) -> Floats:
        """Of each curve, (n,), summing to 1."""
        ...

    @property
    def ceiling(self) -> Floats:
        """What each curve tends to, (n,), at most 1."""
        ...

    def at(self, compute: Floats) -> Floats:
        """Scores at `compute` (m,): (m, n)."""
        ...

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Some of the curves, each as often as it is named, with equal weights."""
        ...


@dataclass(frozen=True, slots=True)
class _Rows:
    weight: Floats

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Some of the curves, each as often as it is named, with equal weights."""
        parts = {f.name: getattr(self, f.name)[rows] for f in fields(self)}
        return type(self)(**{**parts, "weight": np.full(len(rows), 1 / max(len(rows), 1))})


@dataclass(frozen=True, slots=True)
class Sigmoids(_Rows):
    """Curves of ScaleRL's law (`laws.sigmoid`); every field has one entry a curve, weights sum to 1."""

    asymptote: Floats
    exponent: Floats
    midpoint: Floats
    r0: Floats

    @property
    def ceiling(self) -> Floats:
        """The asymptote, (n,)."""
        return self.asymptote

    def at(self, compute: Floats) -> Floats:
        """Scores at `compute` (m,): (m, n)."""
        return sigmoid(np.asarray(compute)[:, None], self.asymptote, self.exponent, self.midpoint, self.r0)


@dataclass(frozen=True, slots=True)
class Lines(_Rows):
    """Straight lines in log compute, cut at 0 and 1: `level` at compute `centre`, `slope` for each e-fold."""

    level: Floats
    slope: Floats
    centre: Floats

    @property
    def ceiling(self) -> Floats:
        """1 where the line rises, (n,)."""
        return np.where(self.slope > 0, 1.0, np.clip(self.level, 0, 1))

    def at(self, compute: Floats) -> Floats:
        """Scores at `compute` (m,): (m, n)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            climb = self.slope * (np.log(np.asarray(compute))[:, None] - np.log(self.centre))
        return np.clip(self.level + np.where(self.slope == 0, 0, climb), 0, 1)


@dataclass(frozen=True, slots=True)
class PowerLaws(_Rows):
    """Curves A − D / C^B (`laws.power_law`), with B as `exponent` and D as `scale`, cut at 0."""

    asymptote: Floats
    exponent: Floats
    scale: Floats

    @property
    def ceiling(self) -> Floats:
        """The asymptote, (n,)."""
        return self.asymptote

    def at(self, compute: Floats) -> Floats:
        """Scores at `compute` (m,): (m, n)."""
        return np.maximum(power_law(np.asarray(compute)[:, None], self.asymptote, self.exponent, self.scale), 0)


@dataclass(frozen=True, slots=True)
class Curves:
    """Families side by side, each with its share of the probability."""

    families: Sequence[Family]
    shares: Sequence[float]

    @property
    def weight(self) -> Floats:
        """Of every curve, (n,), summing to 1."""
        return np.concatenate([f.weight * share for f, share in zip(self.families, self.shares, strict=True)])

    @property
    def ceiling(self) -> Floats:
        """What every curve tends to, (n,)."""
        return np.concatenate([family.ceiling for family in self.families])

    def __call__(self, compute: npt.ArrayLike) -> Floats:
        """Scores at `compute` (m,): (m, n), in the order of `weight`."""
        points = np.atleast_1d(np.asarray(compute, float))
        return np.concatenate([family.at(points) for family in self.families], axis=1)

    def sample(self, n: int, rng: np.random.Generator) -> "Curves":
        """`n` curves of equal weight, drawn systematically and in random order over the families."""
        bounds = np.cumsum(self.weight)
        picked = np.searchsorted(bounds / bounds[-1], (np.arange(n) + rng.random()) / n)
        sizes = np.cumsum([0, *(len(family.weight) for family in self.families)])
        parts: list[Family] = []
        counts: list[float] = []
        for family, start, end in zip(self.families, sizes[:-1], sizes[1:], strict=True):
            rows = picked[(picked >= start) & (picked < end)] - start
            if len(rows):
                parts.append(family.take(rng.permutation(rows)))
                counts.append(len(rows) / n)
        return Curves(parts, counts)


def quantiles(values: Floats, weight: Floats, levels: Sequence[float]) -> Floats:
    """Weighted quantiles of each row of `values` (m, n): (m, levels)."""
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    bounds = np.cumsum(weight[order], axis=1)
    bounds -= weight[order] / 2
    found = np.empty((len(values), len(levels)))
    for row, (bound, line) in enumerate(zip(bounds, ordered, strict=True)):
        found[row] = np.interp(levels, bound, line)
    return found
