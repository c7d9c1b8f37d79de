"""Cases of tests/INPUTS.md about vLLM: what a user sets, and servers that do not fit."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host
import pytest
import torch
from needs import needs_vllm

from curricula import CurriculaValueError
from curricula_vllm import client, cpu, plugin, same_model, serve


def switch(value: str) -> Any:
    def case(_: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(plugin.FP32_HEAD, value)
            assert plugin.fp32_head_is_asked() == (value == "1")

    return case


def other_plugin(_: Path) -> None:
    needs_vllm()
    from vllm.model_executor.custom_op import op_registry_oot

    from curricula_vllm.head import force_fp32

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(op_registry_oot, "LogitsProcessor", type("Theirs", (), {}))
        force_fp32()


def other_machine(folder: Path) -> None:
    needs_vllm()
    from curricula_vllm.transfer import SharedMemoryEngine, SharedUpdate

    SharedMemoryEngine.receive_weights(SimpleNamespace(), SharedUpdate(str(folder / "0.safetensors")))


def other_transfer(_: Path) -> None:
    server = {"weight_transfer_config": {"backend": "nccl"}}
    served = SimpleNamespace(base_url="http://127.0.0.1:8000", get_server_info=lambda: server)
    cpu._init_communicator(None)(served, "cpu")


def served(folder: Path, name: str, **shape: int) -> None:
    """Attaches to a server that says it has this model."""
    host.shape(**shape).save_pretrained(folder / "served")
    shown = {"model_config": {"model": str(folder / name)}}
    client_of = SimpleNamespace(base_url="http://127.0.0.1:8000", model=name, get_server_info=lambda: shown)
    trainer = SimpleNamespace(
        model=host.model(),
        args=SimpleNamespace(trust_remote_code=False),
        vllm_generation=SimpleNamespace(vllm_client=client_of),
    )
    same_model.check_same_model(trainer)


def late(_: Path) -> None:
    """The variable is set once the engine is built, as in a process in which vLLM has loaded its plugins."""
    needs_vllm()
    from vllm.model_executor.layers.logits_processor import LogitsProcessor

    from curricula_vllm.head import head_dtype

    processor = LogitsProcessor.__new__(LogitsProcessor)
    torch.nn.Module.__init__(processor)
    model = torch.nn.ModuleDict({"lm_head": torch.nn.Linear(2, 2, dtype=torch.bfloat16), "logits": processor})
    worker = SimpleNamespace(model_runner=SimpleNamespace(model=model))
    executor = SimpleNamespace(driver_worker=worker)
    llm = SimpleNamespace(llm_engine=SimpleNamespace(model_executor=executor))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(plugin.FP32_HEAD, "1")
        head_dtype(SimpleNamespace(mode="colocate", llm=llm))


def no_model(_: Path) -> None:
    needs_vllm()
    asked = [sys.executable, "-m", "curricula_vllm", "serve", "./nomodel"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    raise CurriculaValueError(done.stderr.splitlines()[-1])


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
    "vllm-fp32-late": late,
    "vllm-no-server": no_server,
    "vllm-other-transfer": other_transfer,
    "vllm-other-model": lambda folder: served(folder, "served", hidden_size=64, num_hidden_layers=1),
    "vllm-same-shape": lambda folder: served(folder, "served"),
    "vllm-model-elsewhere": lambda folder: served(folder, "not-here", hidden_size=64),
    "vllm-no-model": no_model,
    "vllm-other-machine": other_machine,
    "vllm-sleep": lambda _: cpu._init_vllm(None)(SimpleNamespace(mode="colocate", enable_sleep_mode=True)),
    "vllm-no-rows": no_rows,
    "vllm-no-limit": lambda _: client.complete(SimpleNamespace(), [[1], [2, 3]], [4, 0]),
    "vllm-empty-prompt": lambda _: client.complete(SimpleNamespace(), [[1], []], [4, 4]),
}
