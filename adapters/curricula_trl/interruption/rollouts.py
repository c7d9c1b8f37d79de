"""The two parts of a rollout, and what was put in between."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Logps = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Begun:
    """A rollout at its limit of thinking.

    Attributes:
        tokens: What it has so far.
        logps: Their log-probabilities, where the generator gives any.
        interrupted: Whether it is to be told to answer now.
        budget: Tokens that it may still get; 0 for one that is complete.
    """

    tokens: list[int]
    logps: list[float | None] | None
    interrupted: bool
    budget: int


def begun(
    tokens: Sequence[int], logps: Logps | None, *, limit: int, closed: int | None, ended: bool, answer: int
) -> Begun:
    """What becomes of a rollout after its first part.

    Args:
        tokens: At most `limit` tokens.
        logps: Of them.
        limit: Its limit of thinking.
        closed: Tokens until its thinking ended; None where it did not.
        ended: Whether it is at its own end.
        answer: Tokens for an answer.
    """
    most = len(tokens) if closed is None else min(len(tokens), closed + answer)
    kept, scores = list(tokens[:most]), None if logps is None else list(logps[:most])
    if ended or len(tokens) < limit:
        return Begun(kept, scores, False, 0)
    if closed is None:
        return Begun(kept, scores, True, answer)
    return Begun(kept, scores, False, closed + answer - most)


def within(part: Begun, length: int, longest: int | None) -> Begun:
    """A rollout in what room an engine has for it: one that has none stays cut off where it is.

    Args:
        part: Its first part.
        length: Tokens from the start of the prompt to where it goes on.
        longest: Tokens that the engine can hold of prompt and rollout; None where there is no such limit.
    """
    if longest is None or part.budget <= longest - length:
        return part
    room = max(0, longest - length)
    return Begun(part.tokens, part.logps, part.interrupted and room > 0, room)


@dataclass(frozen=True, slots=True)
class Rollout:
    """A whole rollout.

    Attributes:
        tokens: All of it.
        logps: Their log-probabilities, NaN where a token was not sampled.
        forced: First and one past the last of the tokens that were put in; None where none were.
    """

    tokens: list[int]
    logps: list[float | None] | None
    forced: tuple[int, int] | None


def joined(first: Begun, sentence: Sequence[int], tokens: Sequence[int], logps: Logps | None) -> Rollout:
    """A rollout out of its first part, the sentence where it was interrupted, and what came after.

    >>> joined(Begun([5, 6], [-0.1, -0.2], True, 3), [8, 9], [7], [-0.3])
    Rollout(tokens=[5, 6, 8, 9, 7], logps=[-0.1, -0.2, nan, nan, -0.3], forced=(2, 4))
    """
    between = list(sentence) if first.interrupted else []
    start = len(first.tokens)
    scores = None
    if first.logps is not None:
        scores = [*first.logps, *[math.nan] * len(between), *(logps or ())]
    forced = (start, start + len(between)) if first.interrupted else None
    return Rollout([*first.tokens, *between, *tokens[: first.budget]], scores, forced)
