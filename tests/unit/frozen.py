"""Asks of a curriculum that is put back to where it was before each of them, its generator aside."""

from collections.abc import Iterator

from curricula import Curriculum, Draw


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
