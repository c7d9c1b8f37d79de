"""What may stand under `source:` in an environment of a mix."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from curricula.config import CurriculumConfig
from curricula.config.explain import config_error, did_you_mean, explain
from curricula.config.schema import Levels, Section, problem, shown


class _Source(Section):
    """What every source can say about its prompts.

    Attributes:
        format: "text" for plain prompts, "chat" for a list with one message of the user. Without it,
            prompts stay as they are; those of reasoning-gym are plain.
        instructions: Put before every prompt: as a system message in a chat, else as a paragraph.
    """

    format: Literal["text", "chat"] | None = None
    instructions: str | None = None


class ReasoningGymSource(_Source):
    """Prompts made by a task of reasoning-gym, scored by the task itself.

    Attributes:
        name: The task's name in reasoning-gym, such as chain_sum.
        config: The task's own settings; they override what a level says.
        size: How many prompts, over all levels.
        seed: The prompts are a function of name, config, levels and seed.
        levels: `[low, high]` of the task's difficulty levels; the prompts are split evenly among them.
        answer_tag: The answer is read from the last `<tag>…</tag>` of a completion, and a completion without
            one has none; without this key the whole completion is the answer.
    """

    type: Literal["reasoning_gym"]
    name: str
    config: dict[str, Any] = Field(default_factory=dict)
    size: Annotated[int, Field(ge=1, le=10_000_000)] = 1000
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    levels: Levels | None = None
    answer_tag: Annotated[str, Field(pattern=r"^[\w-]+$")] | None = None

    @model_validator(mode="after")
    def _coherent(self) -> "ReasoningGymSource":
        if self.levels is not None:
            low, high = self.levels
            if not 0 <= low <= high:
                raise problem("levels: [low, high] with 0 <= low <= high", f"{[low, high]}")
            if self.size < high - low + 1:
                raise problem(f"at least one prompt for each of {high - low + 1} levels", f"size {self.size}")
        for key in ("size", "seed"):
            if key in self.config:
                raise problem(f"{key} beside config", f"{key} inside it", "move it one level up")
        return self


class DatasetSource(_Source):
    """Prompts from a data set on disk, scored by the environment's `reward: module:function`.

    Attributes:
        path: A .parquet, .jsonl, .json or .arrow file, or a folder that `save_to_disk` wrote or that holds such
            files; relative paths start at the mix's folder.
        split: Which split of a folder, or a slice such as `train[:1000]`; "train" where it is left out.
        prompt: Column of the prompts: text, or lists of messages.
        answer: Column that the reward function gets as `answer`, beside its own name.
        key: Column of stable identities; without it a prompt's identity is a hash of its row.
        level: Column of whole numbers, how difficult each prompt is.
    """

    type: Literal["dataset"]
    path: Annotated[str, Field(min_length=1)]
    split: str | None = None
    prompt: str = "prompt"
    answer: str | None = None
    key: str | None = None
    level: str | None = None


Source = ReasoningGymSource | DatasetSource
SOURCES: dict[str, type[ReasoningGymSource] | type[DatasetSource]] = {
    "reasoning_gym": ReasoningGymSource,
    "dataset": DatasetSource,
}


def source_of(config: CurriculumConfig, environment: str) -> Source:
    """The source of an environment, validated.

    Raises:
        ConfigError: No source, one of an unknown type, or one with a key that is wrong.
    """
    given = config.environments[environment].source
    under = ("environments", environment, "source")
    if given is None:
        message = f"expected a source; got nothing; give one of type {' or '.join(SOURCES)}"
        raise config_error(config.origin, under, message)
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in SOURCES:
        hint = did_you_mean(kind, SOURCES) if isinstance(kind, str) else "choose one"
        message = f"expected a type of source ({', '.join(SOURCES)}); got {shown(kind)}; {hint}"
        raise config_error(config.origin, (*under, "type"), message)
    try:
        return SOURCES[kind].model_validate(given)
    except ValidationError as error:
        raise explain(error, config.origin, SOURCES[kind], under) from None
