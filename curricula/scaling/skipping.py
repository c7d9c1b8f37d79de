"""Which early points are left out: those that anything in [0, 1] explains better than the law does.

The first steps of a run obey other laws (warm-up, learning the format of an answer). ScaleRL (2510.13786) leaves out
the first 1,500 of 16,000 GPU-hours by eye; here it is a comparison of evidence.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from curricula.errors import CurriculaValueError
from curricula.scaling.noise import Noise
from curricula.scaling.observations import Observations
from curricula.scaling.sigmoids import SigmoidPosterior

# At most a quarter of the points, of 8 or more, at up to so many places.
PART, LEAST, PLACES = 4, 8, 6
# Log odds against any given place beforehand.
RELUCTANCE = 3.0


def skip_early(observed: Observations, skip: str | float | None) -> tuple[Observations, float]:
    """Leave out early points.

    Args:
        observed: The points; those at no compute are the first of them.
        skip: "auto" for the rule of this module, None for nothing, or a compute below which points are left out.

    Returns:
        The points that stay, and the compute below which others were left out (0 where none were).

    Raises:
        CurriculaValueError: `skip` is something else, or leaves nothing above no compute.
    """
    if skip is None:
        return observed, 0.0
    if skip == "auto":
        start = _start(observed)
    else:
        if not isinstance(skip, int | float | np.number) or isinstance(skip, bool) or not 0 <= skip < np.inf:
            raise CurriculaValueError(
                f'fit: expected skip as "auto", None, or the compute below which points are left out; got {skip!r}'
            )
        start = float(skip)
        if not (observed.positive >= start).any():
            raise CurriculaValueError(
                f"fit: expected skip to leave points; got {skip:g} with points up to {observed.compute.max():g}"
            )
    stays = _stays(observed, start)
    left_out = len(observed) - int(stays.sum())
    if not left_out:
        return observed, 0.0
    note = f"{left_out} of {len(observed)} points below a compute of {start:.4g} were left out"
    return replace(observed.take(stays), notes=(*observed.notes, note)), start


def _stays(observed: Observations, start: float) -> npt.NDArray[np.bool_]:
    return observed.compute >= start


def _start(observed: Observations) -> float:
    """The compute from which the law holds, by evidence: points left out have density 1, being anywhere in [0, 1]."""
    places = np.unique(observed.compute)
    if len(places) < LEAST:
        return 0.0
    most = len(places) // PART
    candidates = [0.0, *places[np.unique(np.linspace(1, most, min(most, PLACES)).astype(int))]]
    rough = [_evidence(observed, start, SigmoidPosterior.rough_evidence) for start in candidates]
    best = candidates[int(np.argmax(rough))]
    if not best:
        return 0.0
    closer = [_evidence(observed, start, SigmoidPosterior.evidence) for start in (0.0, best)]
    return float(best) if closer[1] > closer[0] else 0.0


def _evidence(observed: Observations, start: float, measure: Callable[[SigmoidPosterior], float]) -> float:
    kept = observed.take(_stays(observed, start))
    evidence = measure(SigmoidPosterior(kept, Noise.of(kept)))
    if not start:
        return evidence
    # Where noise alone may put a point anywhere, leaving points out must not pay.
    anywhere = min(0.0, evidence / len(kept) - 2)
    return evidence + (len(observed) - len(kept)) * anywhere - RELUCTANCE
