"""Scaling laws: fit a score against compute, forecast it, compare recipes, plan pilots."""

from curricula.scaling.comparing import Comparison, compare
from curricula.scaling.crossing import Crossing
from curricula.scaling.curves import Curves
from curricula.scaling.fit import fit
from curricula.scaling.fitted import ScalingFit
from curricula.scaling.observations import evaluation_noise

__all__ = ["Comparison", "Crossing", "Curves", "ScalingFit", "compare", "evaluation_noise", "fit"]
