"""vLLM for a run of TRL's: on a machine without an accelerator too, with an FP32 head, and asked row by row.

Everything is imported when it is first used: vLLM loads `curricula_vllm.plugin` in each of its processes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from curricula.versions import require

if TYPE_CHECKING:
    from curricula_vllm.client import Completion, complete, sampling
    from curricula_vllm.cpu import use_cpu
    from curricula_vllm.server import Server
    from curricula_vllm.watching import watch

__all__ = ["Completion", "Server", "complete", "sampling", "use_cpu", "watch"]

_HOMES = {
    "Completion": "client",
    "Server": "server",
    "complete": "client",
    "sampling": "client",
    "use_cpu": "cpu",
    "watch": "watching",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'curricula_vllm' has no attribute {name!r}")
    require("vllm")
    return getattr(import_module(f"curricula_vllm.{_HOMES[name]}"), name)
