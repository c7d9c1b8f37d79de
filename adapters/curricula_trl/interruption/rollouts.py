"""The two parts of a rollout, and what was put in between."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Logps = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Begun:
    """A rollout at its limit of thinking.

    Attributes:
        tokens: What it has so far.
        logps: Their log-probabilities, where the generator gives any.
        put_in: What is put in after them; empty where nothing is.
        budget: Tokens that it may still get; 0 for one that is complete.
        full: Of one that is complete, whether it had all the tokens that it may have.
    """

    tokens: list[int]
    logps: list[float | None] | None
    put_in: tuple[int, ...]
    budget: int
    full: bool


def begun(
    tokens: Sequence[int],
    logps: Logps | None,
    *,
    limit: int,
    closed: int | None,
    ended: bool,
    answer: int,
    sentence: Sequence[int],
) -> Begun:
    """What becomes of a rollout after its first part.

    Args:
        tokens: At most `limit` tokens.
        logps: Of them.
        limit: Its limit of thinking.
        closed: Tokens until its thinking ended; None where it did not.
        ended: Whether it is at its own end.
        answer: Tokens for an answer.
        sentence: What is put in where it still thinks at its limit.
    """
    most = len(tokens) if closed is None else min(len(tokens), closed + answer)
    kept, scores = list(tokens[:most]), None if logps is None else list(logps[:most])
    left = answer if closed is None else closed + answer - most
    if ended or len(tokens) < limit or not left:
        return Begun(kept, scores, (), 0, full=not left)
    return Begun(kept, scores, tuple(sentence) if closed is None else (), left, full=False)


def within(part: Begun, prompt: int, longest: int | None) -> Begun:
    """A rollout in what room an engine has for it: one that has none stays cut off where it is.

    Args:
        part: Its first part.
        prompt: Tokens of its prompt.
        longest: Tokens that the engine can hold of prompt and rollout; None where there is no such limit.
    """
    if longest is None:
        return part
    room = max(0, longest - prompt - len(part.tokens) - len(part.put_in))
    if not part.budget:
        return Begun(part.tokens, part.logps, part.put_in, 0, part.full or not room)
    if part.budget <= room:
        return part
    return Begun(part.tokens, part.logps, part.put_in if room else (), room, full=not room)


class Forced(NamedTuple):
    """What was put into a rollout: after how many of its tokens, and which."""

    start: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rollout:
    """A whole rollout.

    Attributes:
        tokens: All of it.
        logps: Their log-probabilities, NaN where a token was not sampled.
        forced: What was put in; None where nothing was.
        full: Whether it had all the tokens that it may have.
    """

    tokens: list[int]
    logps: list[float | None] | None
    forced: Forced | None
    full: bool


def joined(first: Begun, tokens: Sequence[int], logps: Logps | None) -> Rollout:
    """A rollout out of its first part, what is put in, and what came after.

    >>> joined(Begun([5, 6], [-0.1, -0.2], (8,), 3, False), [7], [-0.3])
    Rollout(tokens=[5, 6, 8, 7], logps=[-0.1, -0.2, nan, -0.3], forced=Forced(start=2, tokens=(8,)), full=False)
    """
    between = first.put_in
    scores = None
    if first.logps is not None:
        scores = [*first.logps, *[math.nan] * len(between), *(logps or ())]
    forced = Forced(len(first.tokens), between) if between else None
    full = len(tokens) >= first.budget if first.budget else first.full
    return Rollout([*first.tokens, *between, *tokens[: first.budget]], scores, forced, full)
