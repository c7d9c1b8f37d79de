"""What a fit is: curves with weights, and what is read off them."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from curricula.errors import CurriculaValueError
from curricula.scaling.bands import LEVEL, quantiles, tails
from curricula.scaling.curves import Curves, Family, PowerLaws, Sigmoids
from curricula.scaling.laws import Floats
from curricula.scaling.observations import Observations, check_unit, number, numbers

PARAMETERS = ("asymptote", "exponent", "midpoint", "r0")


@dataclass(frozen=True, slots=True, repr=False)
class ScalingFit:
    """A score as a function of compute, with what is not known of it.

    Attributes:
        method: how it was fitted: bayes, grid, power_law or log_linear.
        observed: the points that were fitted.
        curves: the candidates with their weights.
        best: the one curve that is the point estimate; None where that is the mean over candidates.
        sigmoid: the probability that the law is the sigmoid.
        bounded: the probability that it has a ceiling: that it is the sigmoid or one that bends as well.
        noise: one point's standard deviation, in units of the score; NaN where it was not estimated.
        correlation: of neighbouring points' deviations; NaN where it was not estimated.
        start: the compute below which points were left out, 0 where none were.
        reasons: what the points cannot tell: a name and a sentence each.
        notes: what was done to the points before.
    """

    method: str
    observed: Observations
    curves: Curves
    best: Family | None = None
    sigmoid: float = 1.0
    bounded: float = 1.0
    noise: float = math.nan
    correlation: float = math.nan
    start: float = 0.0
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Parameters and intervals, not the curves.

        >>> ScalingFit.of_parameters(0.61, 1.92, 2542, r0=0.2)
        ScalingFit(known, asymptote 0.61, exponent 1.92, midpoint 2.54e+03, r0 0.2)
        """
        parts = [self.method] if self.known else [self.method, f"{len(self.observed)} points up to {self.last:.4g}"]
        for name in PARAMETERS:
            low, high = self.interval(name)
            if math.isfinite(value := getattr(self, name)):
                parts.append(f"{name} {value:.3g}" + ("" if self.known else f" [{low:.3g}, {high:.3g}]"))
        return f"ScalingFit({', '.join([*parts, *self.reasons])})"

    @property
    def asymptote(self) -> float:
        """The ceiling A: the posterior's median, as all parameters; NaN for a straight line, which has none."""
        return self._point("asymptote")

    @property
    def exponent(self) -> float:
        """The steepness B."""
        return self._point("exponent")

    @property
    def midpoint(self) -> float:
        """C_mid, the compute at which half of the gain is made; NaN for a law without one."""
        return self._point("midpoint")

    @property
    def r0(self) -> float:
        """The score at no compute; NaN for a law without one."""
        return self._point("r0")

    @property
    def known(self) -> bool:
        """Whether the curve was given by its parameters: it has no points then."""
        return self.method == "known"

    @property
    def blank(self) -> bool:
        """Whether all points are at one compute: nothing is told of a curve, and its parameters are NaN."""
        return not self.known and len(set(self.observed.positive.tolist())) < 2

    @property
    def last(self) -> float:
        """The furthest compute with a point; 0 of a curve that is known."""
        return 0.0 if self.known else float(self.observed.compute.max())

    def interval(self, name: str, level: float = LEVEL) -> tuple[float, float]:
        """Equal-tailed credible interval of asymptote, exponent, midpoint or r0, given that the law has it.

        Raises:
            CurriculaValueError: another name, or a level outside of (0, 1).
        """
        if name not in PARAMETERS:
            raise CurriculaValueError(f"interval: expected one of {', '.join(PARAMETERS)}; got {name!r}")
        family = None if self.blank else self._parameters(name)
        if family is None:
            return math.nan, math.nan
        low, high = quantiles(getattr(family, name)[None], family.weight, _tails(level))[0]
        return float(low), float(high)

    def predict(self, compute: npt.ArrayLike, *, level: float = LEVEL) -> tuple[Floats, Floats, Floats]:
        """The score at `compute`, and the band it lies in with probability `level`.

        The band is about the curve itself; a new evaluation lies about it with the standard deviation `noise`.

        Args:
            compute: one number or (m,), 0 or more, in the unit of the fit.
            level: of the band.

        Returns:
            mean, low, high: of the shape of `compute`.
        """
        points = numbers("predict", "compute", compute)
        if points.ndim > 1 or not np.isfinite(points).all() or (points < 0).any():
            raise CurriculaValueError(f"predict: expected compute as finite numbers of 0 or more; got {compute!r:.80}")
        flat = np.atleast_1d(points)
        values, weight = self.curves(flat), self.curves.weight
        mean = values @ weight if self.best is None else self.best.at(flat)[:, 0]
        low, high = quantiles(values, weight, _tails(level)).T if len(flat) else (mean, mean)
        low, high = np.minimum(low, mean), np.maximum(high, mean)
        return tuple(part.reshape(points.shape) for part in (mean, low, high))  # pyright: ignore[reportReturnType]

    def sample(self, n: int, *, seed: int = 0) -> Curves:
        """`n` curves of equal weight from the posterior; call the result with compute (m,) for scores (m, n)."""
        if not isinstance(n, int | np.integer) or n < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise CurriculaValueError(f"sample: expected 1 curve or more; got {n!r}")
        return self.curves.sample(n, np.random.default_rng([seed, 5]))

    def to_dict(self) -> dict[str, Any]:
        """What a program would read, as JSON takes it: numbers that do not exist are None."""
        return {
            "method": self.method,
            **{name: _json(getattr(self, name)) for name in PARAMETERS},
            "intervals": {name: [_json(end) for end in self.interval(name)] for name in PARAMETERS},
            "level": LEVEL,
            "sigmoid": self.sigmoid,
            "bounded": self.bounded,
            "noise": _json(self.noise),
            "correlation": _json(self.correlation),
            "points": len(self.observed),
            "compute": [float(self.observed.compute.min()), float(self.observed.compute.max())],
            "start": self.start,
            "reasons": dict(self.reasons),
            "notes": list(self.notes),
        }

    def _parameters(self, name: str) -> Family | None:
        # Laws that derive from the sigmoid have the same names for other things.
        own = (Sigmoids, PowerLaws)
        return next((one for one in self.curves.families if type(one) in own and hasattr(one, name)), None)

    def _point(self, name: str) -> float:
        if self.blank:
            return math.nan
        if self.best is not None:
            return float(getattr(self.best, name)[0]) if hasattr(self.best, name) else math.nan
        family = self._parameters(name)
        if family is None:
            return math.nan
        return float(quantiles(getattr(family, name)[None], family.weight, (0.5,))[0, 0])

    @classmethod
    def of_parameters(cls, asymptote: float, exponent: float, midpoint: float, r0: float = 0.0) -> "ScalingFit":
        """A curve that is known.

        >>> fit = ScalingFit.of_parameters(0.61, 1.92, 2542, r0=0.2)
        >>> float(fit.predict(2542)[0].round(3))
        0.405
        """
        given = dict(zip(PARAMETERS, (asymptote, exponent, midpoint, r0), strict=True))
        for name, value in given.items():
            rate = name in ("asymptote", "r0")
            found = number("of_parameters", name, value)
            if not (0 <= found <= 1 if rate else 0 < found < np.inf):
                raise CurriculaValueError(
                    f"of_parameters: expected {name} {'in [0, 1]' if rate else 'above 0'}; got {value!r}"
                )
        check_unit("of_parameters", "midpoint", midpoint)
        one = Sigmoids(*(np.array([value], float) for value in (1.0, asymptote, exponent, midpoint, r0)))
        nothing = Observations(np.array([float(midpoint)]), one.at(np.array([midpoint]))[0], None, np.zeros(1, int))
        return cls("known", nothing, Curves([one], [1.0]), best=one, noise=0.0)


def _tails(level: float) -> tuple[float, float]:
    if not 0 < number("a band", "level", level) < 1:
        raise CurriculaValueError(f"expected a level between 0 and 1; got {level!r}")
    return tails(level)


def _json(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
