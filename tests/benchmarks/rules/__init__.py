"""Published selection rules, each from its equations, and this package's curriculum among them."""

from rules.arcus import Arcus
from rules.arcus_thompson import ArcusThompson
from rules.base import Rule
from rules.clairvoyant import Clairvoyant, Hindsight
from rules.curriculum import CurriculumRule
from rules.dapo import Dapo
from rules.dps import Dps
from rules.greedy import Greedy
from rules.greso import Greso
from rules.mopps import Mopps
from rules.no_positive import NoPositive
from rules.prime_pools import PrimePools
from rules.spo import Spo
from rules.uniform import Uniform

PEERS: tuple[type[Rule], ...] = (
    Uniform,
    NoPositive,
    Dapo,
    PrimePools,
    Spo,
    Greso,
    Dps,
    Mopps,
    ArcusThompson,
    Arcus,
    Greedy,
)
"""The rules of others; none of them needs more than `choose` and `observe`."""

__all__ = [
    "PEERS",
    "Arcus",
    "ArcusThompson",
    "Clairvoyant",
    "CurriculumRule",
    "Dapo",
    "Dps",
    "Greedy",
    "Greso",
    "Hindsight",
    "Mopps",
    "NoPositive",
    "PrimePools",
    "Rule",
    "Spo",
    "Uniform",
]
