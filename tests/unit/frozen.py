"""A curriculum with a past, and asks of one that is put back to where it was before each, its generator aside."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from curricula import Curriculum, Draw, GroupOutcome, PromptPool


def experienced(
    names: Sequence[str], selection: Mapping[str, Any], rounds: int, batch: int, in_flight: int = 0
) -> Curriculum:
    """A curriculum that has seen some outcomes, so that scores differ, and has some draws out."""
    curriculum = Curriculum(PromptPool(names), {"curriculum": {"expiry": 10**6, **selection}}, seed=5)
    rng = np.random.default_rng(0)
    rates = rng.random(len(names))
    for _ in range(rounds):
        draws = curriculum.ask(batch, group_size=4)
        curriculum.tell([GroupOutcome(draw.ticket, (rng.random(4) < rates[draw.index]) * 1.0) for draw in draws])
    if in_flight:
        curriculum.ask(in_flight, group_size=4)
    return curriculum


def asks(curriculum: Curriculum, count: int, rounds: int, group_size: int = 4) -> Iterator[list[Draw]]:
    """Draws of so many asks: evidence is as old, as many draws were made and shares were won as before each."""
    beliefs, rule = curriculum._learner.beliefs, curriculum._learner.mixer.rule
    clock, counts = getattr(beliefs, "clock", None), dict(curriculum._counts)
    won = getattr(rule, "won_E", None)
    for _ in range(rounds):
        draws = curriculum.ask(count, group_size=group_size)
        yield draws
        curriculum._tickets.close([draw.ticket for draw in draws])
        curriculum._counts.update(counts)
        if clock is not None:
            beliefs.clock = clock
        if won is not None:
            rule.won_E = won
