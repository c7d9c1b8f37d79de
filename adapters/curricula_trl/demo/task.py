"""The task of the demo: running sums of digits, modulo ten, in environments of very different worth.

The prompt `3571____=` asks for `3856`: each digit of the answer is the sum of the digits so far. The
more digits, the harder. One environment has an answer key that belongs to other prompts, as happens
with scraped data: nothing can be learned from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from datasets import Dataset

WIDTH = 8
"""Prompts are padded to this many characters before the `=`."""

VOCABULARY = ("<pad>", "<eos>", "_", "=", *"0123456789")


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment of the demo's mix.

    Attributes:
        name: Its name in the tables and charts.
        digits: Fewest and most digits of its prompts.
        size: Number of its prompts in the training pool.
        right: Whether its answer key is the true one.
    """

    name: str
    digits: tuple[int, int]
    size: int
    right: bool = True


MIX = (
    Environment("easy", (3, 5), 2400),
    Environment("frontier", (6, 7), 150),
    Environment("hard", (8, 8), 400),
    Environment("unlearnable", (8, 8), 900, right=False),
)
"""Mostly prompts that are mastered or hopeless: what a pool looks like to a policy that has moved on."""


def prompt_of(digits: str) -> str:
    """The prompt that asks for the running sums of some digits.

    >>> prompt_of("3571")
    '3571____='
    """
    return digits.ljust(WIDTH, "_") + "="


def answer_of(digits: str) -> str:
    """The running sums of some digits, modulo ten.

    >>> answer_of("3571")
    '3856'
    """
    total, sums = 0, []
    for digit in digits:
        total = (total + int(digit)) % 10
        sums.append(str(total))
    return "".join(sums)


def random_digits(generator: np.random.Generator, count: int) -> str:
    """A number of so many digits, zeros in front allowed.

    >>> random_digits(np.random.default_rng(0), 4)
    '8652'
    """
    return "".join(map(str, generator.integers(0, 10, count)))


def build_pools(seed: int, held_out: int = 128, mix: Sequence[Environment] = MIX) -> tuple[Dataset, Dataset]:
    """The training pool and the held-out prompts; no prompt is in both, nor twice in one.

    Args:
        seed: Seed of the prompts.
        held_out: Number of held-out prompts per environment.
        mix: The environments.

    Returns:
        Two data sets with the columns prompt, answer and environment; the rows of an environment are
        adjacent, in the order of `mix`.
    """
    generator = np.random.default_rng([seed, 1])
    taken: set[str] = set()
    train: list[dict[str, str]] = []
    held: list[dict[str, str]] = []
    for environment in mix:
        rows = _rows(environment, environment.size + held_out, generator, taken)
        held += rows[:held_out]
        train += rows[held_out:]
    return Dataset.from_list(train), Dataset.from_list(held)


def _rows(environment: Environment, size: int, generator: np.random.Generator, taken: set[str]) -> list[dict[str, str]]:
    low, high = environment.digits
    numbers: list[str] = []
    while len(numbers) < size:
        digits = random_digits(generator, int(generator.integers(low, high + 1)))
        if digits not in taken:
            taken.add(digits)
            numbers.append(digits)
    answers = [answer_of(digits) for digits in numbers]
    if not environment.right:
        answers = answers[1:] + answers[:1]
    return [
        {"prompt": prompt_of(digits), "answer": answer, "environment": environment.name}
        for digits, answer in zip(numbers, answers, strict=True)
    ]
