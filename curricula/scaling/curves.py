"""Sets of curves, one for each draw of a posterior or each candidate of a search."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from curricula.scaling.bands import systematic
from curricula.scaling.laws import Floats, distance, power_law

LN2 = float(np.log(2))


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
    """Curves of ScaleRL's law (`laws.sigmoid`); every field has one entry a curve, weights sum to 1.

    The share of the gain that is made is a function of z = exponent · log(compute / midpoint), 1/2 at 0. Laws that
    derive from this one have another such function.
    """

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
        share = self.share(distance(np.asarray(compute)[:, None], self.midpoint, self.exponent))
        return self.r0 + (self.asymptote - self.r0) * share

    @staticmethod
    def share(z: Floats) -> Floats:
        """Of the gain, at `z`."""
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(-z))

    @staticmethod
    def inverse(share: Floats) -> Floats:
        """The `z` at which `share` is made."""
        return np.log(share) - np.log1p(-share)

    @staticmethod
    def slope(z: Floats) -> Floats:
        """The derivative of `share`."""
        with np.errstate(over="ignore"):
            return 1 / (2 + np.exp(z) + np.exp(-z))

    @staticmethod
    def steepest(exponent: Floats) -> Floats:
        """The `z` at which a curve rises most for a unit of compute; minus infinity where that is at none."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(exponent - 1, 0)) - np.log(exponent + 1)


@dataclass(frozen=True, slots=True)
class Exponentials(Sigmoids):
    """Curves that slow down faster than a sigmoid: a share of 1 − 2^(−(C / C_mid)^B), Weibull's law."""

    @staticmethod
    def share(z: Floats) -> Floats:
        """Of the gain, at `z`."""
        with np.errstate(over="ignore"):
            return -np.expm1(-LN2 * np.exp(z))

    @staticmethod
    def inverse(share: Floats) -> Floats:
        """The `z` at which `share` is made."""
        return np.log(-np.log1p(-share) / LN2)

    @staticmethod
    def slope(z: Floats) -> Floats:
        """The derivative of `share`."""
        with np.errstate(over="ignore"):
            return LN2 * np.exp(np.minimum(z, 700) - LN2 * np.exp(z))

    @staticmethod
    def steepest(exponent: Floats) -> Floats:
        """The `z` at which a curve rises most for a unit of compute; minus infinity where that is at none."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(exponent - 1, 0)) - np.log(exponent * LN2)


@dataclass(frozen=True, slots=True)
class Gompertz(Sigmoids):
    """Curves that start later than a sigmoid and slow down like it: a share of 2^(−(C_mid / C)^B), Gompertz's law."""

    @staticmethod
    def share(z: Floats) -> Floats:
        """Of the gain, at `z`."""
        with np.errstate(over="ignore"):
            return np.exp(-LN2 * np.exp(-z))

    @staticmethod
    def inverse(share: Floats) -> Floats:
        """The `z` at which `share` is made."""
        return -np.log(-np.log(share) / LN2)

    @staticmethod
    def slope(z: Floats) -> Floats:
        """The derivative of `share`."""
        with np.errstate(over="ignore"):
            return LN2 * np.exp(np.minimum(-z, 700) - LN2 * np.exp(-z))

    @staticmethod
    def steepest(exponent: Floats) -> Floats:
        """The `z` at which a curve rises most for a unit of compute."""
        return np.log(exponent * LN2) - np.log(exponent + 1)


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


@dataclass(frozen=True, slots=True, repr=False)
class Curves:
    """Families side by side, each with its share of the probability."""

    families: Sequence[Family]
    shares: Sequence[float]

    def __repr__(self) -> str:
        """The families and their shares, not every curve."""
        parts = (f"{type(f).__name__} {share:.3g}" for f, share in zip(self.families, self.shares, strict=True))
        return f"Curves({', '.join(parts)})"

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
        picked = systematic(self.weight, n, rng.random())
        sizes = np.cumsum([0, *(len(family.weight) for family in self.families)])
        parts: list[Family] = []
        counts: list[float] = []
        for family, start, end in zip(self.families, sizes[:-1], sizes[1:], strict=True):
            rows = picked[(picked >= start) & (picked < end)] - start
            if len(rows):
                parts.append(family.take(rng.permutation(rows)))
                counts.append(len(rows) / n)
        return Curves(parts, counts)
