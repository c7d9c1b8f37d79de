"""What vLLM loads: registered once, and the head on a vLLM that has no dtype of its own for it."""

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from launched import launch
from needs import needs_vllm
from vllm_host import saved

needs_vllm()

from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory  # noqa: E402
from vllm.model_executor.custom_op import op_registry_oot  # noqa: E402
from vllm.model_executor.layers.logits_processor import LogitsProcessor  # noqa: E402
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod  # noqa: E402

from curricula import CurriculaRuntimeError  # noqa: E402
from curricula_vllm import head, plugin  # noqa: E402
from curricula_vllm.reading import read  # noqa: E402


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


@pytest.fixture(name="older")
def _older(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The head as it is on a vLLM from 0.22 to 0.25."""
    monkeypatch.delattr(LogitsProcessor, "_apply_head")
    monkeypatch.setattr(LogitsProcessor, "__init__", lambda self: torch.nn.Module.__init__(self))
    spec = importlib.util.spec_from_file_location("older_head", Path(head.__file__))
    older = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "older_head", older)
    spec.loader.exec_module(older)
    return older


def test_an_older_vllm_projects_as_it_does_where_fp32_is_not_asked_for(
    older: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(LogitsProcessor, "_get_logits", lambda *arguments: given.append(arguments[1:]) or "its own")
    monkeypatch.delenv(plugin.FP32_HEAD, raising=False)
    assert older.FP32Head()._get_logits("hidden", "head", None) == "its own"
    assert given == [("hidden", "head", None, False)]
    monkeypatch.setenv(plugin.FP32_HEAD, "1")
    processor = older.FP32Head()
    assert processor.head_dtype == torch.float32
    processor._gather_logits, processor.org_vocab_size = lambda logits: logits, 5
    layer = SimpleNamespace(weight=torch.eye(8).bfloat16(), quant_method=UnquantizedEmbeddingMethod())
    found = processor._get_logits(torch.ones(2, 8).bfloat16(), layer, torch.full((8,), 0.5).bfloat16())
    assert torch.equal(found, torch.full((2, 5), 1.5))
    processor._gather_logits = lambda logits: None  # on all ranks but one
    assert processor._get_logits(torch.ones(2, 8).bfloat16(), layer, None) is None
    assert len(given) == 1


@pytest.mark.parametrize("asked", [False, True])
def test_the_head_of_an_older_vllm_is_read_as_it_computes(asked: bool) -> None:
    torch.manual_seed(0)
    weight, packed = torch.randn(9, 6).bfloat16(), torch.randn(9, 6).bfloat16()
    method = SimpleNamespace(apply=lambda layer, hidden: hidden @ packed.T)
    layer = SimpleNamespace(weight=weight, quant_method=method)
    processor = SimpleNamespace(**{"head_dtype": torch.float32} if asked else {})
    found = read(SimpleNamespace(lm_head=layer, logits_processor=processor), [2, 7], [1, 4])
    assert torch.equal(found.values, (weight if asked else packed).float()[[2, 7]][:, [1, 4]])
    assert (found.dtype, found.computes) == ("bfloat16", "float32" if asked else "bfloat16")


class OnGPU(torch.Tensor):
    """Says that it is."""

    is_cuda = True


@pytest.mark.parametrize("bias", [None, torch.ones(8)])
@pytest.mark.parametrize(("dtype", "summed"), [("bfloat16", True), ("float16", True), ("float32", False)])
def test_an_older_vllm_copies_no_head_on_a_gpu(
    older: Any, dtype: str, summed: bool, bias: torch.Tensor | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[torch.dtype] = []

    def product(one: torch.Tensor, other: torch.Tensor, out_dtype: torch.dtype) -> torch.Tensor:
        asked.append(out_dtype)
        return one.as_subclass(torch.Tensor).to(out_dtype) @ other.to(out_dtype)

    monkeypatch.setattr(torch, "mm", product)
    torch.manual_seed(0)
    hidden, weight = torch.randn(2, 3, 16).to(getattr(torch, dtype)), torch.randn(8, 16).to(getattr(torch, dtype))
    found = older._in_fp32(hidden.as_subclass(OnGPU), weight, None if bias is None else bias.to(weight.dtype))
    torch.testing.assert_close(found.as_subclass(torch.Tensor), older._in_fp32(hidden, weight, bias))
    assert asked == [torch.float32] * summed


def test_an_older_vllm_projects_in_fp32_too(older: Any) -> None:
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
