"""Fits of all curves that the options name."""

from dataclasses import dataclass, replace

import numpy as np

from curricula.cli.scaling.options import MethodName, skipped
from curricula.cli.scaling.series import Series
from curricula.errors import CurriculaValueError
from curricula.scaling import ScalingFit, fit


@dataclass(frozen=True, slots=True)
class Fitted:
    """A curve and its fit."""

    series: Series
    fit: ScalingFit

    @property
    def label(self) -> str:
        """What the curve is called."""
        return self.series.label

    @property
    def last(self) -> float:
        """The compute of the last point."""
        return float(self.series.compute.max())

    @property
    def notes(self) -> list[str]:
        """What was done to the points, and what they cannot tell, in plain words."""
        return [*self.series.notes, *self.fit.notes, *self.fit.reasons.values()]


def fit_all(found: list[Series], *, method: MethodName, r0: float | None, skip: str, percent: bool) -> list[Fitted]:
    """Fit every curve; the line of an error says which one it is about."""
    start = r0 / 100 if r0 is not None and percent else r0
    early = skipped(skip)
    fits: list[Fitted] = []
    for series in found:
        score, compute, noise = series.score, series.compute, series.noise
        if len(score) == 1:
            # One row may hold replicates of one compute: they are told apart there.
            score, compute, noise = score[0], compute[0], None if noise is None else noise[0]
        try:
            made = fit(compute, score, r0=start, skip=early, noise=noise, method=method)
        except CurriculaValueError as error:
            raise CurriculaValueError(f"{series.label}: {error}") from error
        # Rows of unequal length are filled up: that is no score left out.
        if np.isnan(series.score).any():
            made = replace(made, notes=tuple(note for note in made.notes if "scores are NaN" not in note))
        fits.append(Fitted(series, made))
    return fits
