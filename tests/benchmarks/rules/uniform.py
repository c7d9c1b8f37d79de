"""Uniform draws."""

from rules.base import Floats, Rows, Rule


class Uniform(Rule):
    """Each free prompt is as likely as any other, as a shuffled data loader makes it on average."""

    name = "uniform"

    def _choose(self, n: int, free: Rows) -> Rows:
        return self.rng.choice(free, n, replace=False)

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        return
