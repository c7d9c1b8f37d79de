"""A simulated learner: worlds of prompts, the laws they are drawn from, and rules run in them."""

from curricula.simulation.fitting import fit_law
from curricula.simulation.informed import InformedFilter
from curricula.simulation.law import EnvironmentLaw, Law, Prerequisite, Regression
from curricula.simulation.rules import CurriculumRule, Oracle, Rule, Uniform
from curricula.simulation.run import Curve, gain, simulate
from curricula.simulation.world import World
from curricula.simulation.worlds import WORLDS, named_law, random_law

__all__ = [
    "WORLDS",
    "CurriculumRule",
    "Curve",
    "EnvironmentLaw",
    "InformedFilter",
    "Law",
    "Oracle",
    "Prerequisite",
    "Regression",
    "Rule",
    "Uniform",
    "World",
    "fit_law",
    "gain",
    "named_law",
    "random_law",
    "simulate",
]
