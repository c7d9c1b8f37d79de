"""`vllm serve`, with what TRL needs of it.

    python -m curricula_vllm serve MODEL [arguments of vllm serve]

It opens the routes that weights come by, takes them by NCCL or, where there is no accelerator, through shared memory,
and gives the log-probabilities of the distribution that is sampled from. Arguments that are given stand.
"""

import json
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from curricula.versions import require


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
    }
    names = {argument.partition("=")[0].replace("_", "-") for argument in given}
    added = [part for name, value in own.items() if name not in names for part in (name, value)]
    eager = [] if accelerator or "--enforce-eager" in names else ["--enforce-eager"]
    return ["serve", *given, *added, *eager]


def serve(given: Sequence[str]) -> None:
    """Runs the server in this process, until it is stopped."""
    require("vllm")
    from curricula_vllm.cpu import has_accelerator

    os.environ.setdefault("VLLM_SERVER_DEV_MODE", "1")
    if not has_accelerator():
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    _answer_for_vllm()
    sys.argv = ["vllm", *arguments(given, has_accelerator())]
    from vllm.entrypoints.cli.main import main

    main()


def _answer_for_vllm() -> None:
    """The command of vLLM asks for the version of the distribution `vllm`, also where it came as `vllm-cpu`."""
    try:
        metadata.version("vllm")
    except metadata.PackageNotFoundError:
        version = metadata.version

        def answer(name: str) -> str:
            return version("vllm-cpu") + "+cpu" if name == "vllm" else version(name)

        metadata.version = answer
