"""Whether a curve leaves its law at the end: collapses, stops, or takes off once more."""

import numpy as np

from curricula.scaling.curves import Curves
from curricula.scaling.observations import Observations

# Points that a trend is seen in, and how many standard errors it must be of.
LEAST = 5
CLEAR = 2.2


def leaving(observed: Observations, curves: Curves, noise: float, correlation: float) -> float:
    """The slope of the last third's deviations from the law, for each e-fold of compute; 0 where it may be noise.

    Args:
        observed: the points.
        curves: the law.
        noise: one point's standard deviation.
        correlation: of neighbours' deviations.
    """
    seen = observed.compute > 0
    last = seen & (observed.compute >= np.quantile(observed.compute[seen], 2 / 3))
    if last.sum() < LEAST:
        return 0.0
    deviation = observed.score[last] - curves(observed.compute[last]) @ curves.weight
    logs = np.log(observed.compute[last])
    logs = logs - logs.mean()
    spread = float(logs @ logs)
    if not spread:
        return 0.0
    slope = float(logs @ deviation) / spread
    # The noise that was estimated has taken up what the law leaves: neighbours' differences have not.
    steps = np.diff(observed.score)[observed.series[1:] == observed.series[:-1]]
    size = min(noise, float(np.median(np.abs(steps))) / (0.6745 * np.sqrt(2))) if len(steps) > LEAST else noise
    error = max(size, 1e-4) / np.sqrt(spread) * np.sqrt((1 + correlation) / (1 - correlation))
    return slope if abs(slope) > CLEAR * error else 0.0
