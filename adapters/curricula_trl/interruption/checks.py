"""What forced length interruption refuses, each in one line."""

import inspect
from collections.abc import Mapping
from typing import Any

from curricula import CurriculaValueError, CurriculumConfig
from curricula.config import InterruptionConfig
from curricula.config.explain import config_error
from curricula.config.schema import shown
from curricula_trl.interruption.thinking import Thinking, token_ids
from curricula_trl.texts import tokenizer_of

_PARAMETERS = ["self", "prompt_ids", "images", "multimodal_fields", "num_generations", "has_tool_images"]
_REGEX = "vllm_structured_outputs_regex"
_HOOK = "_generate_single_turn"
_GRAMMARS = ("structured_outputs", "guided_decoding", "constraints", "force_words_ids", "prefix_allowed_tokens_fn")
"""What in `generation_kwargs` makes a rollout follow a form: of vLLM, and of transformers."""
_LIMITS = {"max_completion_length": 0, "vllm_max_model_length": 1}
"""Tokens of a prompt, at least, that count against a limit."""


def check_mix(config: CurriculumConfig) -> None:
    """Refuses what of a mix's own `trainer:` cannot be beside its interruption, before anything is loaded.

    How many tokens the sentence has is known only with a tokenizer: here it counts for one.

    Raises:
        ConfigError: With the argument; of lengths that do not fit, with both figures.
    """
    chosen = config.interruption
    if chosen is None:
        return
    least = chosen.at[1] + chosen.answer + 1
    for name, prompt in _LIMITS.items():
        most = config.trainer.get(name)
        if type(most) is int and least > most - prompt:
            message = (
                f"expected at most {_room(name, most, 'trainer.')}; got {least} or more: at {chosen.at[1]}, the "
                f"sentence, and answer {chosen.answer}; lower them, or raise trainer.{name}"
            )
            raise config_error(config.origin, ("interruption",), message)
    if config.trainer.get("use_transformers_continuous_batching"):
        message = "expected false beside interruption, which generates in two parts; got true; leave one of them out"
        raise config_error(config.origin, ("trainer", "use_transformers_continuous_batching"), message)
    kwargs = config.trainer.get("generation_kwargs")
    if (name := _form(config.trainer.get(_REGEX), kwargs)) is not None:
        path = ("trainer", name) if name == _REGEX else ("trainer", "generation_kwargs", name)
        message = (
            "expected nothing beside interruption, whose second part would begin the form anew; got one; leave one of "
            "them out"
        )
        raise config_error(config.origin, path, message)


def check_trainer(trainer: Any, config: CurriculumConfig) -> None:
    """Refuses a trainer that generates in a way that cannot be interrupted.

    Raises:
        CurriculaValueError: With the reason.
    """
    from trl import RLOOTrainer

    name = type(trainer).__name__
    if isinstance(trainer, RLOOTrainer):
        raise _refusal(
            f"{name} has no mask for tokens that the policy did not choose; use GRPOTrainer, or leave interruption out"
        )
    for option, value in (
        ("rollout_func", getattr(trainer, "rollout_func", None)),
        ("environment_factory", getattr(trainer, "environment_factories", None)),
        ("tools", getattr(trainer, "tools", None)),
        ("use_transformers_continuous_batching", trainer.args.use_transformers_continuous_batching),
    ):
        if value:
            raise _refusal(f"with {option} rollouts are not generated in one turn by TRL; leave one of them out")
    if (form := _form(trainer.args.vllm_structured_outputs_regex, trainer.args.generation_kwargs)) is not None:
        raise _refusal(f"with {form} the second part of a rollout would begin the form anew; leave one of them out")
    columns = getattr(trainer.train_dataset, "column_names", None) or []
    if images := [column for column in ("image", "images") if column in columns]:
        raise _refusal(f"column {images[0]!r} has images, and a continuation is made of tokens alone; leave one out")
    own = next(
        vars(cls)[_HOOK]
        for cls in type(trainer).__mro__
        if _HOOK in vars(cls) and not cls.__module__.startswith("curricula_trl.")
    )
    parameters = list(inspect.signature(own).parameters)
    if parameters != _PARAMETERS:
        raise _refusal(
            f"expected {name}.{_HOOK}({', '.join(_PARAMETERS[1:])}), as in trl 1.16; got "
            f"({', '.join(parameters[1:])}); leave interruption out, or use that version"
        )


def sentence_of(trainer: Any, chosen: InterruptionConfig) -> list[int]:
    """The tokens of the sentence, checked against the trainer's limits.

    Raises:
        CurriculaValueError: A sentence that this tokenizer has no tokens for, or lengths that do not fit.
    """
    tokenizer = tokenizer_of(trainer)
    tokens = token_ids(tokenizer, chosen.sentence)
    if not tokens:
        raise _refusal(f"expected a sentence of at least one token; got {shown(chosen.sentence)}, which has none")
    if tokenizer.unk_token_id is not None and tokenizer.unk_token_id in tokens:
        raise _refusal(
            f"expected a sentence that the tokenizer has tokens for; got {shown(chosen.sentence)}, part of which is "
            f"{tokenizer.unk_token}; set interruption.sentence to another"
        )
    if ends := [token for token in trainer.eos_token_ids if token in tokens]:
        raise _refusal(
            f"expected a sentence after which a rollout goes on; got {shown(chosen.sentence)}, which holds the end "
            f"token {tokenizer.decode(ends[:1])!r}; set interruption.sentence to another"
        )
    if chosen.closing and Thinking(tokenizer, chosen.closing).end(tokens) is None:
        raise _refusal(
            f"expected a sentence whose tokens hold {shown(chosen.closing)}; got {shown(tokenizer.decode(tokens))}; "
            "set interruption.sentence to one that this tokenizer keeps"
        )
    for name in ("n", "num_return_sequences"):
        if (trainer.args.generation_kwargs or {}).get(name, 1) != 1:
            raise _refusal(f"expected one rollout a row; got generation_kwargs with {name}; remove it")
    total = chosen.at[1] + len(tokens) + chosen.answer
    if trainer.max_completion_length is None:
        raise _refusal(f"expected max_completion_length, at least {total} for these lengths; got none; set it")
    limits = {"max_completion_length": trainer.max_completion_length}
    if trainer.use_vllm and trainer.args.vllm_max_model_length is not None:
        limits["vllm_max_model_length"] = trainer.args.vllm_max_model_length
    for name, most in limits.items():
        if total > most - _LIMITS[name]:
            raise _refusal(
                f"expected at most {_room(name, most)}; got {total}: at {chosen.at[1]}, sentence {len(tokens)}, "
                f"answer {chosen.answer}; lower them, or raise {name}"
            )
    return tokens


def _form(regex: Any, kwargs: Any) -> str | None:
    """The name of what makes rollouts follow a form; None where nothing does."""
    if regex is not None:
        return _REGEX
    given = kwargs if isinstance(kwargs, Mapping) else {}
    return next((name for name in _GRAMMARS if given.get(name) is not None), None)


def _room(name: str, most: int, where: str = "") -> str:
    return f"{most - _LIMITS[name]} tokens, {where}{name}" + (" less a prompt" if _LIMITS[name] else "")


def _refusal(text: str) -> CurriculaValueError:
    return CurriculaValueError(f"attach: interruption: {text}")
