"""`fit`: from scores against compute to a curve with its band."""

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from curricula.errors import CurriculaValueError
from curricula.scaling.bayes import average
from curricula.scaling.curves import Curves
from curricula.scaling.fitted import ScalingFit
from curricula.scaling.lines import line_posterior
from curricula.scaling.noise import Noise
from curricula.scaling.observations import Observations, observe
from curricula.scaling.reasons import reasons_of, too_short
from curricula.scaling.searches import ASYMPTOTES, paper_grid, power_search
from curricula.scaling.skipping import skip_early

# Standard errors are not believed where points lie so many times further from every curve: at 6 the factor ends.
UNDERSTATED = 5.0

Method = Literal["bayes", "grid", "power_law", "log_linear"]


def fit(
    compute: npt.ArrayLike,
    score: npt.ArrayLike,
    *,
    r0: float | None = None,
    skip: str | float | None = "auto",
    noise: npt.ArrayLike | None = None,
    method: Method = "bayes",
    seed: int = 0,
) -> ScalingFit:
    """Fit a score in [0, 1] as a function of compute.

    The methods:

    - `bayes`: a model average. With prior probability .77 ScaleRL's sigmoid (2510.13786),
      R0 + (A − R0) / (1 + (C_mid / C)^B); with .05 R0 + (A − R0)(1 − 2^(−(C / C_mid)^B)), which slows down faster
      (Weibull), and with .03 R0 + (A − R0) 2^(−(C_mid / C)^B), which starts later (Gompertz): they keep the band honest
      where the law is not quite a sigmoid. Of all three A ~ Beta(3, 2) with probability .85, else Beta(2, 1); R0 flat
      on [0, A]; log B ~ Normal(log 1.5, .45); log C_mid flat from a tenth of the first compute to the last one, then
      as C_mid^−.4 up to ten times the last. With .15 a straight line in log compute, cut at 0 and 1: level in the
      middle ~ Normal(.5, .4), slope for each e-fold ~ Normal(0, .1). Noise is normal; where no standard errors are
      given its size is log-normal about .01 with a log standard deviation of .6, else it is those times a factor about
      1.1 (.35), and where that comes to 5 or more they are left aside; neighbours' deviations are correlated by 0, .3,
      .6 or .85 with probabilities .75, .15, .07, .03.
      A curve that falls, or whose last third leaves the law, goes on as that third does with probability .25 and stays
      where it is with .25. Parameters are the sigmoid's, given that it is one; forecasts average over all.
    - `grid`: the paper's procedure; see `searches.paper_grid`.
    - `power_law`: A − D / C^B by least squares, the paper's foil.
    - `log_linear`: the straight line alone.

    Args:
        compute: (n,) or (seeds, n), 0 or more, in any unit.
        score: (n,) or (seeds, n), rates; NaN where there was no evaluation. Points of the same compute are replicates.
        r0: the score at no compute, if it is known.
        skip: which early points are left out: "auto" for the rule of `skipping`, None for none, or a compute below
            which all are.
        noise: standard errors of the scores, (n,) or one number, if they are known: see `evaluation_noise`.
        method: one of the above.
        seed: of the draws.

    Raises:
        CurriculaValueError: what was measured cannot be fitted; the message says what was expected.

    >>> import numpy as np
    >>> from curricula.scaling.laws import sigmoid
    >>> compute = np.linspace(1500, 8000, 40)
    >>> score = sigmoid(compute, 0.61, 1.92, 2542, 0.2) + np.random.default_rng(0).normal(0, 0.004, 40)
    >>> found = fit(compute, score, r0=0.2)
    >>> mean, low, high = found.predict(16_000)
    >>> bool(low < sigmoid(16_000, 0.61, 1.92, 2542, 0.2) < high)
    True
    """
    if method not in get_args(Method):
        raise CurriculaValueError(f"fit: expected method as one of {', '.join(get_args(Method))}; got {method!r}")
    if not isinstance(seed, int | np.integer) or seed < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CurriculaValueError(f"fit: expected seed as a whole number of 0 or more; got {seed!r}")
    points = observe(compute, score, noise=noise, r0=r0)
    observed, start = skip_early(points, skip)
    if method == "bayes":
        found = _bayes(observed, start, seed)
        if observed.noise is None or found.noise < UNDERSTATED * float(np.median(observed.noise)):
            return found
        given = float(np.median(observed.noise))
        found = _bayes(*skip_early(replace(points, noise=None), skip), seed)
        reason = f"points scatter by {found.noise:.2g}, far more than the noise of {given:.2g} given: it was left aside"
        return replace(found, reasons={"noise_given": reason, **found.reasons})
    if method == "log_linear":
        above = observed.take(observed.compute > 0)
        lines, _, scale, _ = line_posterior(above, Noise.of(above), seed)
        size = scale * float(np.median(Noise.of(above).unit))
        return ScalingFit(
            method,
            observed,
            Curves([lines], [1.0]),
            sigmoid=0.0,
            bounded=0.0,
            noise=size,
            start=start,
            reasons=too_short(observed),
            notes=observed.notes,
        )
    curves, best = paper_grid(observed) if method == "grid" else power_search(observed)
    reasons = too_short(observed)
    if method == "grid" and curves.asymptote[best] in (ASYMPTOTES[0], ASYMPTOTES[-1]):
        reasons["edge"] = f"the asymptote {curves.asymptote[best]:g} is an end of the paper's grid"
    return ScalingFit(
        method,
        observed,
        Curves([curves], [1.0]),
        best=curves.take(np.array([best])),
        sigmoid=float(method == "grid"),
        start=start,
        reasons=reasons,
        notes=observed.notes,
    )


def _bayes(observed: Observations, start: float, seed: int) -> ScalingFit:
    found = average(observed, seed)
    return ScalingFit(
        "bayes",
        observed,
        found.curves,
        sigmoid=found.sigmoid,
        bounded=found.bounded,
        noise=found.noise,
        correlation=found.correlation,
        start=start,
        reasons=reasons_of(observed, found),
        notes=observed.notes,
    )
