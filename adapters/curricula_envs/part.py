"""One environment's part of the mixed data set, and how places in a mix are named in errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from datasets import Dataset, Features, Value

from curricula.config import CurriculumConfig
from curricula.config.explain import config_error
from curricula.errors import ConfigError

Reward = Callable[..., Any]
"""A reward function as TRL calls it: keyword arguments `prompts`, `completions`, columns; one reward or None each."""

PROMPT, LEVEL, UID = "prompt", "level", "uid"
CHAT = [{"role": Value("string"), "content": Value("string")}]


@dataclass(frozen=True, slots=True)
class Part:
    """What one source came to.

    Attributes:
        dataset: Columns prompt, level and the source's own, these under names that clash with no column of ours.
        reward: Scores this environment's completions.
        arguments: Name of an argument of `reward` to the column that fills it.
        chat: Whether prompts are lists of messages.
        keys: One stable identity per row; None to hash the rows.
    """

    dataset: Dataset
    reward: Reward
    arguments: Mapping[str, str]
    chat: bool
    keys: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """An environment of a mix, for errors about it."""

    config: CurriculumConfig
    environment: str

    def error(self, path: tuple[str | int, ...], message: str) -> ConfigError:
        """An error about a key of the environment."""
        return config_error(self.config.origin, ("environments", self.environment, *path), message)


def text_prompt(text: str, instructions: str | None, chat: bool) -> Any:
    r"""A prompt from its text.

    >>> text_prompt("2+2?", "Be brief.", chat=False)
    'Be brief.\n\n2+2?'
    >>> text_prompt("2+2?", None, chat=True)
    [{'role': 'user', 'content': '2+2?'}]
    """
    if not chat:
        return text if instructions is None else f"{instructions}\n\n{text}"
    system = [] if instructions is None else [{"role": "system", "content": instructions}]
    return [*system, {"role": "user", "content": text}]


def prompt_feature(chat: bool) -> Any:
    """The column type of prompts."""
    return Features({PROMPT: CHAT if chat else Value("string")})[PROMPT]
