"""DAPO's dynamic sampling."""

from rules.uniform import Uniform


class Dapo(Uniform):
    """Uniform draws, redrawn until the batch is full of informative groups; every draw is counted.

    DAPO, arXiv 2503.14476, dynamic sampling: only groups with 0 < correct < G are trained on, and the batch is
    refilled until it is full. A draw is as likely informative as a uniform one: updates are saved, not rollouts.
    """

    name = "dapo_refill"
    refill = True
