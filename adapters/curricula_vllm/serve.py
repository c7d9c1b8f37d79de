"""`vllm serve`, with what TRL needs of it.

    python -m curricula_vllm serve MODEL [arguments of vllm serve]

It opens the routes that weights come by, takes them by NCCL or, where there is no accelerator, through shared memory,
gives the log-probabilities of the distribution that is sampled from, and shows what its head holds and computes in.
CURRICULA_FP32_HEAD=1 computes the logits in FP32. Arguments that are given stand.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from importlib import metadata

from curricula.errors import CurriculaError, CurriculaValueError, described
from curricula.versions import require
from curricula_vllm.plugin import EXTENSION, FP32_HEAD, PARENT, fp32_head_is_asked

_OVERRIDES = "--hf-overrides"


def arguments(given: Sequence[str], accelerator: bool) -> list[str]:
    """The arguments of `vllm`, from those after `serve`.

    >>> arguments(["m", "--max-logprobs=5"], accelerator=True)[:2]
    ['serve', 'm']
    >>> "--max-logprobs" in arguments(["m", "--max-logprobs=5"], accelerator=True)
    False
    """
    own = {
        "--weight-transfer-config": json.dumps({"backend": "nccl" if accelerator else "curricula_shm"}),
        "--logprobs-mode": "processed_logprobs",
        "--max-logprobs": "-1",
        "--worker-extension-cls": EXTENSION,
    }
    names = set(map(_name, given))
    added = [part for name, value in own.items() if name not in names for part in (name, value)]
    eager = [] if accelerator or "--enforce-eager" in names else ["--enforce-eager"]
    return ["serve", *given, *added, *eager]


def show_fp32_head(given: Sequence[str]) -> list[str]:
    """The arguments, with the head's dtype among the overrides of the model's configuration.

    >>> show_fp32_head(["m", "--hf-overrides", '{"rope_theta": 5}'])
    ['m', '--hf-overrides', '{"rope_theta": 5, "head_dtype": "float32"}']
    >>> show_fp32_head(["m"])
    ['m', '--hf-overrides.head_dtype', 'float32']

    Raises:
        CurriculaValueError: Another dtype of the head is given.
    """
    shown, names = list(given), list(map(_name, given))
    dotted = [place for place, name in enumerate(names) if name.startswith(f"{_OVERRIDES}.")]
    for place in dotted:
        if names[place] == f"{_OVERRIDES}.head-dtype":
            _agree(_value(given, place)[1])
    if _OVERRIDES not in names or dotted:
        return [*shown, f"{_OVERRIDES}.head_dtype", "float32"]
    place, text = _value(given, names.index(_OVERRIDES))
    try:
        overrides = json.loads(text)
    except json.JSONDecodeError:
        return shown  # vLLM says what is wrong with it
    if isinstance(overrides, dict):
        _agree(overrides.get("head_dtype", "float32"))
        merged = json.dumps({**overrides, "head_dtype": "float32"})
        shown[place] = f"{_OVERRIDES}={merged}" if given[place].startswith("--") else merged
    return shown


def _name(argument: str) -> str:
    return argument.partition("=")[0].replace("_", "-")


def _value(given: Sequence[str], place: int) -> tuple[int, str]:
    """Where the value of an argument stands, and what it is."""
    _, equals, value = given[place].partition("=")
    return (place, value) if equals else (place + 1, given[place + 1] if place + 1 < len(given) else "")


def _agree(dtype: object) -> None:
    if dtype != "float32":
        raise CurriculaValueError(
            f"{_OVERRIDES}: expected a head_dtype of 'float32' beside {FP32_HEAD}=1; got {dtype!r}: leave one of them "
            "out"
        )


def end_with(parent: int, pause: float = 1.0) -> None:
    """Ends this process and its group once its parent is gone, also where that was killed and could not do it."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(pause)
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.killpg(0, number)
            time.sleep(10)

    threading.Thread(target=look, name="curricula-parent", daemon=True).start()


def serve(given: Sequence[str]) -> None:
    """Runs the server in this process, until it is stopped.

    Raises:
        CurriculaValueError: What vLLM says of a model or an argument that it does not take.
    """
    require("vllm")
    if parent := os.environ.pop(PARENT, ""):
        end_with(int(parent))
    if fp32_head_is_asked():
        from curricula_vllm.head import HAS_DTYPE

        given = show_fp32_head(given) if HAS_DTYPE else given
    from curricula_vllm.cpu import has_accelerator

    os.environ.setdefault("VLLM_SERVER_DEV_MODE", "1")
    if not has_accelerator():
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    _answer_for_vllm()
    sys.argv = ["vllm", *arguments(given, has_accelerator())]
    from vllm.entrypoints.cli.main import main

    try:
        main()
    except CurriculaError:
        raise
    except (OSError, ValueError) as error:
        raise CurriculaValueError(
            f"serve: expected a model and arguments that vLLM takes; got {' '.join(given)}: {described(error)}"
        ) from error


def _answer_for_vllm() -> None:
    """The command of vLLM asks for the version of the distribution `vllm`, also where it came as `vllm-cpu`."""
    try:
        metadata.version("vllm")
    except metadata.PackageNotFoundError:
        version = metadata.version

        def answer(name: str) -> str:
            return version("vllm-cpu") + "+cpu" if name == "vllm" else version(name)

        metadata.version = answer
