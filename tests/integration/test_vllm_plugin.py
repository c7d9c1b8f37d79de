"""What vLLM loads: registered once, and the head on a vLLM that has no dtype of its own for it."""

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from launched import launch
from vllm_host import needs_vllm, saved

needs_vllm()

from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory  # noqa: E402
from vllm.model_executor.custom_op import op_registry_oot  # noqa: E402
from vllm.model_executor.layers.logits_processor import LogitsProcessor  # noqa: E402
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod  # noqa: E402

from curricula import CurriculaRuntimeError  # noqa: E402
from curricula_vllm import head, plugin  # noqa: E402


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WeightTransferEngineFactory, "_registry", dict(WeightTransferEngineFactory._registry))
    own = {name: layer for name, layer in op_registry_oot.items() if name != "LogitsProcessor"}
    op_registry_oot.clear()
    op_registry_oot.update(own)
    yield
    op_registry_oot.clear()
    op_registry_oot.update(own)


def test_vllm_finds_it() -> None:
    (found,) = importlib.metadata.entry_points(group="vllm.general_plugins", name="curricula")
    assert found.load() is plugin.register


def test_it_may_be_loaded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plugin.FP32_HEAD, raising=False)
    for _ in range(2):
        plugin.register()
    assert plugin.SHARED_MEMORY in WeightTransferEngineFactory._registry
    assert "LogitsProcessor" not in op_registry_oot
    monkeypatch.setenv(plugin.FP32_HEAD, "1")
    for _ in range(2):
        plugin.register()
    assert op_registry_oot["LogitsProcessor"] is head.FP32Head


FP32, PLAIN = "float32", "bfloat16"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "asked", "found"),
    [
        ("launched", [False, True, False], [[PLAIN, PLAIN], [FP32, FP32], [PLAIN, PLAIN]]),
        ("built", [True, False, True], [[FP32], [PLAIN], [FP32]]),
    ],
)
def test_each_engine_of_a_process_has_the_head_it_asks_for(
    tmp_path: Path, way: str, asked: list[bool], found: list[list[str]]
) -> None:
    saved(tmp_path / "model", "bfloat16")
    out, script = tmp_path / "out.json", Path(__file__).with_name("fp32_host.py")
    code, text = launch(out, 1, script=script, folder=str(tmp_path), way=way, asked=asked)
    assert code == 0, text[-4000:]
    assert json.loads(out.read_text(encoding="utf-8")) == found


@pytest.mark.slow
def test_a_head_asked_for_after_the_plugins_were_loaded_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "model", "bfloat16")
    out, script = tmp_path / "out.json", Path(__file__).with_name("fp32_host.py")
    code, text = launch(out, 1, script=script, folder=str(tmp_path), way="built", asked=[False, True])
    assert code == 0, text[-4000:]
    (first,), (second,) = json.loads(out.read_text(encoding="utf-8"))
    assert first == PLAIN
    assert second.startswith("an FP32 head: expected vLLM's in float32, as CURRICULA_FP32_HEAD=1 asks; got bfloat16: ")
    assert "\n" not in second


def test_a_head_that_cannot_be_replaced_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(LogitsProcessor, "_get_logits")
    with pytest.raises(CurriculaRuntimeError, match=r"expected a vLLM from 0\.22 to 0\.31; got .*: unset") as caught:
        head.force_fp32()
    assert "\n" not in str(caught.value)


def test_an_older_vllm_projects_in_fp32_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(LogitsProcessor, "_apply_head")
    spec = importlib.util.spec_from_file_location("older_head", Path(head.__file__))
    older = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "older_head", older)
    spec.loader.exec_module(older)
    torch.manual_seed(0)
    hidden, weight = torch.randn(3, 16).bfloat16(), torch.randn(8, 16).bfloat16()
    layer = SimpleNamespace(weight=weight, quant_method=UnquantizedEmbeddingMethod())
    processor = SimpleNamespace(_gather_logits=lambda logits: logits, org_vocab_size=5, head_dtype=torch.float32)
    logits = older.FP32Head._get_logits(processor, hidden, layer, None)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, (hidden.float() @ weight.float().T)[:, :5])
    layer.quant_method = object()
    with pytest.raises(CurriculaRuntimeError, match="expected a head that is not quantised; got object"):
        older.FP32Head._get_logits(processor, hidden, layer, None)
