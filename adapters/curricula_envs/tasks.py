"""Environments made by reasoning-gym: prompts over a range of difficulty levels, scored by the task."""

import contextlib
import dataclasses
import io
import logging
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import reasoning_gym
from datasets import Dataset, Features, Value
from reasoning_gym.coaching.base_curriculum import DefaultCurriculumContext, RangeAttributeMode
from reasoning_gym.factory import CURRICULA, DATASETS
from reasoning_gym.utils import extract_answer

from curricula.config.explain import did_you_mean
from curricula.config.schema import shown
from curricula.errors import CurriculaRuntimeError
from curricula_envs.part import LEVEL, PROMPT, Part, Place, prompt_feature, text_prompt
from curricula_envs.sources import ReasoningGymSource

logger = logging.getLogger("curricula")

_INDEX = "source_index"
_KEPT = 4096  # entries remembered for scoring; others are made again from level and index

# Tasks of reasoning-gym 0.1.25 that walk through sets of strings, whose order changes from process to process
# unless PYTHONHASHSEED is set. Ranks would disagree on the prompts, and a resumed run would have others.
_HASH_DEPENDENT = {"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"}
_REFUSED = {
    "composite": "write its parts as environments of their own",
    "codeio": "its prompts differ between processes at any seed",
}


def task_part(source: ReasoningGymSource, place: Place) -> Part:
    """Makes an environment's prompts.

    Raises:
        ConfigError: A task, a setting or a level that reasoning-gym does not have.
    """
    levels = _levels(source, place)
    made: dict[int | None, Any] = {}
    for position, level in enumerate(levels):
        size = source.size // len(levels) + (position < source.size % len(levels))
        made[level] = _task(source, level, size, position, place)
    scorer = _Scorer(place.environment, source, made)
    chat = source.format == "chat"
    columns: dict[str, list[Any]] = {PROMPT: [], "answer": [], LEVEL: [], _INDEX: []}
    for level, task in made.items():
        for index in range(task.size):
            entry = _entry(task, index, source, place)
            columns[PROMPT].append(text_prompt(str(entry["question"]), source.instructions, chat))
            columns["answer"].append(_text(entry["answer"]))
            columns[LEVEL].append(level)
            columns[_INDEX].append(index)
    features = Features(
        {PROMPT: prompt_feature(chat), "answer": Value("string"), LEVEL: Value("int64"), _INDEX: Value("int64")}
    )
    dataset = Dataset.from_dict(columns, features=features)
    return Part(dataset, scorer, {"answer": "answer", LEVEL: LEVEL, _INDEX: _INDEX}, chat)


def _levels(source: ReasoningGymSource, place: Place) -> Sequence[int | None]:
    name = source.name
    if name not in DATASETS:
        message = f"expected a task of reasoning-gym; got {shown(name)}; {_similar(name)}"
        raise place.error(("source", "name"), message)
    if name in _REFUSED:
        raise place.error(("source", "name"), f"expected another task; got {name}; {_REFUSED[name]}")
    if name in _HASH_DEPENDENT and not os.environ.get("PYTHONHASHSEED", "").isdigit():
        message = (
            f"expected PYTHONHASHSEED to be set, since the prompts of {name} depend on it; got nothing; "
            "start the run with PYTHONHASHSEED=0"
        )
        raise place.error(("source", "name"), message)
    if source.levels is None:
        return [None]
    if name not in CURRICULA:
        raise place.error(("source", "levels"), f"expected no levels, {name} has none; got {list(source.levels)}")
    last = max(len(attribute.levels) for attribute in _curriculum(name).attributes.values()) - 1
    low, high = source.levels
    if high > last:
        raise place.error(("source", "levels"), f"expected levels of {name} from 0 to {last}; got {[low, high]}")
    return range(low, high + 1)


def _curriculum(name: str) -> Any:
    curriculum_class: Any = CURRICULA[name]
    return curriculum_class()


def _task(source: ReasoningGymSource, level: int | None, size: int, position: int, place: Place) -> Any:
    dataset_class, config_class = DATASETS[source.name]
    known = [field.name for field in dataclasses.fields(config_class) if field.name not in ("size", "seed")]
    for key in source.config:
        if key not in known:
            message = f"expected a setting of {source.name}; got {shown(key)}; {did_you_mean(key, known)}"
            raise place.error(("source", "config", key), message)
    # Each level has seeds of its own: an entry's seed is the task's plus its index.
    own = {"seed": (source.seed + position * source.size) % 2**32, "size": size}
    try:
        if level is None:
            config = config_class(**source.config, **own)
        else:
            curriculum = _curriculum(source.name)
            curriculum.set_global_level(level)
            # The highest segment only: a level is a difficulty, not everything up to it.
            context = DefaultCurriculumContext(mode=RangeAttributeMode.UPPER_BOUND)
            config = curriculum.generate_configuration(own, context=context)
            config = dataclasses.replace(config, **source.config)
        if hasattr(config, "validate"):
            config.validate()
        return dataset_class(config=config)
    except Exception as error:
        at = "" if level is None else f" at level {level}"
        message = f"expected settings that {source.name} accepts{at}; got {type(error).__name__}: {error}"
        raise place.error(("source", "config"), message) from None


def _entry(task: Any, index: int, source: ReasoningGymSource, place: Place) -> dict[str, Any]:
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # some tasks print dots
            return task[index]
    except Exception as error:
        message = f"expected prompts from {source.name}; got {type(error).__name__} at prompt {index}: {error}"
        raise place.error(("source",), message) from None


class _Scorer:
    """A task's own scoring, as a reward function."""

    def __init__(self, environment: str, source: ReasoningGymSource, tasks: dict[int | None, Any]) -> None:
        self.__name__ = f"reasoning_gym.{source.name}"
        self._environment = environment
        self._tag = source.answer_tag
        self._tasks = tasks
        self._warned = False
        # Made again instead of stored in the data set: metadata may hold sets, tuples and numbers as keys,
        # which no column type gives back as they were.
        self._entry = lru_cache(maxsize=_KEPT)(lambda level, index: tasks[level][index])

    def __call__(
        self,
        completions: Sequence[Any],
        answer: Sequence[str | None],
        level: Sequence[int | None],
        source_index: Sequence[int],
        **_: Any,
    ) -> list[float]:
        return [self._score(*row) for row in zip(completions, answer, level, source_index, strict=True)]

    def _score(self, completion: Any, answer: str | None, level: int | None, index: int) -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            entry = self._entry(level, index)
        if _text(entry["answer"]) != answer:
            raise CurriculaRuntimeError(
                f"environment {self._environment}: prompt {index} was made with the answer {shown(answer)} and now has "
                f"{shown(_text(entry['answer']))}; reasoning-gym's task is not repeatable, use another"
            )
        text = completion if isinstance(completion, str) else _last_text(completion)
        given = text.strip() if self._tag is None else extract_answer(text, self._tag)
        try:
            return float(self._tasks[level].score_answer(given, entry))
        except Exception as error:
            # Some tasks raise on text that is no answer at all. That is a wrong answer, not a broken run.
            if not self._warned:
                self._warned = True
                logger.warning(
                    "environment %s: reasoning-gym could not score %s (%s: %s); such answers count as 0",
                    self._environment,
                    shown(given),
                    type(error).__name__,
                    error,
                )
            return 0.0


def _last_text(messages: Sequence[dict[str, Any]]) -> str:
    content = messages[-1].get("content") if messages else ""
    return content if isinstance(content, str) else ""


def _text(answer: Any) -> str | None:
    return None if answer is None else str(answer)


def _similar(name: str) -> str:
    hint = did_you_mean(name, DATASETS)
    return hint if "?" in hint else f"see reasoning_gym.factory.DATASETS (version {reasoning_gym.__version__})"
