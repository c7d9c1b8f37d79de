"""What each array of a saved state is about."""

from fnmatch import fnmatchcase
from typing import Literal

Axis = Literal["row", "rows", "batch", "environment", "share", "code", "block", "whole"]

AXES: dict[str, Axis] = {
    "beliefs.passed": "row",
    "beliefs.tried": "row",
    "beliefs.first": "environment",
    "beliefs.prior": "block",
    "beliefs.evidence": "block",
    "beliefs.shift": "row",
    "beliefs.variance": "row",
    "beliefs.means": "block",
    "beliefs.evidence.fall": "row",
    "beliefs.evidence.ability": "row",
    "beliefs.evidence.word": "row",
    "beliefs.abilities.mean": "environment",
    "beliefs.abilities.variance": "environment",
    "beliefs.abilities.shared": "environment",
    "beliefs.shapes.counts": "environment",
    "beliefs.shapes.slope": "environment",
    "beliefs.bins.moments": "environment",
    "beliefs.recent": "rows",
    "beliefs.totals.*": "block",
    "visited.order": "rows",
    "costs.mean": "row",
    "costs.sums": "environment",
    "mixer.control.told": "environment",
    "mixer.control.kept": "environment",
    "mixer.reward.trends.sums": "environment",
    "mixer.reward.unseen.sums": "environment",
    "mixer.rule.counts": "environment",
    "mixer.rule.won": "share",
    "mixer.rule.logits": "environment",
    "mixer.rule.relative": "environment",
    "mixer.rule.codes": "code",
    "mixer.rule.rewards": "whole",
    "mixer.plan.curves.spent": "environment",
    "mixer.plan.curves.bins": "environment",
    "mixer.plan.curves.full": "environment",
    "mixer.plan.curves.width": "environment",
    "mixer.plan.planned": "environment",
    "mixer.plan.target": "environment",
    "mixer.plan.figures": "environment",
    "mixer.plan.whole": "whole",
    "monitor.rates": "environment",
    "monitor.told": "environment",
    "monitor.events": "environment",
    "monitor.tokens": "environment",
    "monitor.endings.ends": "environment",
    "monitor.endings.told": "environment",
    "monitor.endings.warned": "environment",
    "monitor.drawn.codes": "code",
    "monitor.trained.codes": "code",
    "predictor.waiting.values": "row",
    "predictor.predictions": "row",
    "predictor.*visits.values": "row",
    "predictor.*batches": "batch",
    "predictor.*levels": "environment",
    "predictor.*": "whole",
}
"""Arrays of the state of what learns, by their place in it; the first pattern that fits is taken.

A `row` array has an entry for each of the `rows` beside it, `rows` holds rows itself, `batch` the sizes of parts of the
`visits` beside it. An `environment` array has an entry for each environment, a `share` array their shares, a `code`
array codes of them. A `block` array holds sums over prompts that its part takes anew; a `whole` one is about none of
these.
"""


def axis_of(place: str) -> Axis | None:
    """What the array at a place in the learner's state is about; None where nobody said.

    >>> axis_of("costs.mean"), axis_of("predictor.predictor.members.0.visits.values"), axis_of("costs.other")
    ('row', 'row', None)
    """
    if place in AXES:
        return AXES[place]
    return next((axis for pattern, axis in AXES.items() if "*" in pattern and fnmatchcase(place, pattern)), None)
