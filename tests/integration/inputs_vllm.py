"""Cases of tests/INPUTS.md about vLLM: what a user sets, and servers that do not fit."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from curricula_vllm import client, cpu, plugin, serve


def switch(value: str) -> Any:
    def case(_: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(plugin.FP32_HEAD, value)
            assert plugin.fp32_head_is_asked() == (value == "1")

    return case


def other_plugin(_: Path) -> None:
    pytest.importorskip("vllm", reason="vLLM is not installed")
    from vllm.model_executor.custom_op import op_registry_oot

    from curricula_vllm.head import force_fp32

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(op_registry_oot, "LogitsProcessor", type("Theirs", (), {}))
        force_fp32()


def other_machine(folder: Path) -> None:
    pytest.importorskip("vllm", reason="vLLM is not installed")
    from curricula_vllm.transfer import SharedMemoryEngine, SharedUpdate

    SharedMemoryEngine.receive_weights(SimpleNamespace(), SharedUpdate(str(folder / "0.safetensors")))


def other_transfer(_: Path) -> None:
    server = {"weight_transfer_config": {"backend": "nccl"}}
    served = SimpleNamespace(base_url="http://127.0.0.1:8000", get_server_info=lambda: server)
    cpu._init_communicator(None)(served, "cpu")


def no_server(_: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        cpu._check_server(None)(SimpleNamespace(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}"), 0.2)


def no_rows(_: Path) -> None:
    assert client.complete(SimpleNamespace(), [], []) == []


CASES = {
    "vllm-fp32-on": switch("1"),
    "vllm-fp32-off": switch("0"),
    "vllm-fp32-unset": switch(""),
    "vllm-fp32-word": switch("yes"),
    "vllm-fp32-other-plugin": other_plugin,
    "vllm-fp32-other-head": lambda _: serve.show_fp32_head(["m", "--hf-overrides", '{"head_dtype": "model"}']),
    "vllm-no-server": no_server,
    "vllm-other-transfer": other_transfer,
    "vllm-other-machine": other_machine,
    "vllm-sleep": lambda _: cpu._init_vllm(None)(SimpleNamespace(mode="colocate", enable_sleep_mode=True)),
    "vllm-no-rows": no_rows,
    "vllm-no-limit": lambda _: client.complete(SimpleNamespace(), [[1], [2, 3]], [4, 0]),
    "vllm-empty-prompt": lambda _: client.complete(SimpleNamespace(), [[1], []], [4, 4]),
}
