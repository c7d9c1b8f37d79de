"""Whether what was raised is a host's word on an argument, and on which: from where it was raised, and what it says.

What TRL, transformers, accelerate, PEFT or vLLM do not take shows when the trainer is built, or as late as in the first
step: a package that is missing, a value that is not allowed. That is a user's mistake, and one line. What this package
or the user's own code raised is not, and keeps its traceback.
"""

import dataclasses
import re
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl.trainer.grpo_config import GRPOConfig

from curricula import CurriculaError, CurriculumConfig
from curricula.config.explain import config_error
from curricula.config.schema import shown

_HOSTS = ("trl", "transformers", "accelerate", "peft", "vllm")
_OURS = re.compile(r"curricula(_\w+)?$")
_USERS = "_calculate_rewards"  # the method of TRL's that runs users' own code
_LOADING = "from_pretrained"  # transformers' method for a model, its configuration and its tokenizer
_FRAMES = 4
_ADDRESS = ("vllm_server_base_url", "vllm_server_host", "vllm_server_port")
# While a trainer is built, the plain RuntimeError too: memory, devices and process groups have classes of their own.
_KINDS = (ValueError, TypeError, ImportError, LookupError, AttributeError, AssertionError, NotImplementedError)


class FirstStep(TrainerCallback):
    """Notes whether a step was finished."""

    done = False

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """What is refused was refused before."""
        self.done = True


@contextmanager
def building(config: CurriculumConfig, model: str | None = None) -> Generator[None]:
    """Within it whatever TRL refuses is a ConfigError.

    Args:
        config: The mix.
        model: What is loaded within, if anything: what cannot be read as it is loaded is the model's.

    Raises:
        ConfigError: In one line, with the argument where it can be told.
    """
    try:
        yield
    except CurriculaError:
        raise
    except (OSError, SafetensorError) as error:  # transformers' word for a model that is not there
        if _is_of_a_server(error):  # its connection's word is an OSError too
            raise _unreachable(config, error) from error
        if model is None or _named(config, error):
            raise _refusal(config, error) from error
        if not _is_of_the_model(model, error):  # a full disk, say
            raise
        raise _unloadable(config, model, error) from error
    except Exception as error:
        if not (_is_of_a_kind(error) or type(error) is RuntimeError) or not _is_of_a_host(error):
            raise
        if model is not None and model in str(error) and not _named(config, error):
            raise _unloadable(config, model, error) from error
        raise _refusal(config, error) from error


@contextmanager
def training(config: CurriculumConfig, first: FirstStep) -> Generator[None]:
    """Within it, until a step is finished, an argument that TRL refuses is a ConfigError.

    Raises:
        ConfigError: In one line, with the argument where it can be told.
    """
    try:
        yield
    except CurriculaError:
        raise
    except Exception as error:
        if first.done or not _is_of_a_kind(error) or not _is_of_a_host(error):
            raise
        raise _refusal(config, error) from error


def line(error: BaseException) -> str:
    """What an error says, in one line of 300 characters at most."""
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else text[:299] + "…"


def _is_of_a_kind(error: Exception) -> bool:
    # vLLM's name for what it was asked and cannot do: no class of Python's, and none to import where it is missing.
    return isinstance(error, _KINDS) or any(base.__name__ == "VLLMClientError" for base in type(error).__mro__)


def _is_of_a_host(error: BaseException) -> bool:
    """Whether the innermost frame that is ours or a host's is a host's, and none of the user's code is further in."""
    if any(frame.f_code.co_name == _USERS for frame, _ in traceback.walk_tb(error.__traceback__)):
        return False
    packages = [module.partition(".")[0] for module in _modules(error)]
    known = [name for name in packages if name in _HOSTS or _OURS.match(name)]
    return bool(known) and known[-1] in _HOSTS


def _is_of_the_model(model: str, error: BaseException) -> bool:
    """Whether a file of the model's could not be read: by its path, or by what was reading."""
    names = {frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)}
    return isinstance(error, SafetensorError) or _LOADING in names or model in str(error)


def _unloadable(config: CurriculumConfig, model: str, error: BaseException) -> Exception:
    message = f"expected a model that transformers can load; got {shown(model)}: {line(error)}"
    return config_error(config.origin, ("model",), message)


def _is_of_a_server(error: BaseException) -> bool:
    """Whether vLLM's server could not be reached, in Python's word or that of requests, which need not be here."""
    kinds = {base.__name__ for base in type(error).__mro__}
    theirs = any(name.startswith("trl.generation.vllm") for name in _modules(error))
    return theirs and not kinds.isdisjoint(("ConnectionError", "Timeout"))


def _unreachable(config: CurriculumConfig, error: BaseException) -> Exception:
    name = next((name for name in _ADDRESS if name in config.trainer), _ADDRESS[0])
    message = f"expected a vLLM server that answers; got: {line(error)}"
    return config_error(config.origin, ("trainer", name), message)


def _refusal(config: CurriculumConfig, error: BaseException) -> Exception:
    name = _named(config, error)
    kind, modules = type(error).__name__, _modules(error)
    place = next((name for name in reversed(modules) if name.partition(".")[0] in _HOSTS), modules[-1])
    message = f"expected what TRL accepts; got: {line(error)} ({kind} in {place})"
    return config_error(config.origin, ("trainer", name) if name else ("trainer",), message)


def _named(config: CurriculumConfig, error: BaseException) -> str | None:
    """The argument under `trainer:` that the error speaks of: in its text, else in the code that raised it."""
    given = {str(key): name for name, value in config.trainer.items() if isinstance(value, Mapping) for key in value}
    given |= {name: name for name in config.trainer}
    # One that was left out is told from a word of the language by its underscore.
    others = {field.name: field.name for field in dataclasses.fields(GRPOConfig) if "_" in field.name}
    if found := _first(str(error), others | given):
        return found
    frames = traceback.extract_tb(error.__traceback__)[: -_FRAMES - 1 : -1]
    code = [frame.line or "" for frame in frames if not _OURS.match(Path(frame.filename).parent.name)]
    return next(filter(None, (_first(text, given) for text in code)), None)


def _first(text: str, names: Mapping[str, str]) -> str | None:
    return next((names[word] for word in re.findall(r"\w+", text) if word in names), None)


def _modules(error: BaseException) -> list[str]:
    """Names of the modules that it came through, the outermost first."""
    return [str(frame.f_globals.get("__name__", "")) for frame, _ in traceback.walk_tb(error.__traceback__)]
