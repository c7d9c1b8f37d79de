"""What is told apart without an engine: machines with an accelerator, and weights in parts."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from curricula_vllm.cpu import has_accelerator, use_cpu
from curricula_vllm.shared import send


def test_nothing_is_touched_where_there_is_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    from trl.generation.vllm_client import VLLMClient

    before = dict(vars(VLLMClient))
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: torch.device("cuda"))
    assert use_cpu() is False
    assert dict(vars(VLLMClient)) == before


@pytest.mark.parametrize(("found", "counts"), [(None, False), ("mps", False), ("cuda", True), ("xpu", True)])
def test_what_counts_as_an_accelerator(monkeypatch: pytest.MonkeyPatch, found: str | None, counts: bool) -> None:
    device = None if found is None else torch.device(found)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: device)
    assert has_accelerator() is counts


def test_weights_go_in_parts_and_leave_nothing_behind() -> None:
    storage = torch.arange(12.0)
    weights = {"a": storage[:4], "b": storage[4:8].reshape(2, 2).T, "c": storage[8:].bfloat16()}
    seen: list[dict[str, torch.Tensor]] = []
    paths: list[Path] = []

    def post(path: Path) -> None:
        seen.append({name: value.clone() for name, value in load_file(path).items()})
        paths.append(path)

    send(iter(weights.items()), post, part=24)
    assert [sorted(part) for part in seen] == [["a", "b"], ["c"]]
    for part in seen:
        for name, value in part.items():
            torch.testing.assert_close(value, weights[name], rtol=0, atol=0)
    assert not [path for path in paths if path.exists() or path.parent.exists()]
    with pytest.raises(OSError, match="planted"):
        send(iter(weights.items()), lambda path: (paths.append(path), (_ for _ in ()).throw(OSError("planted")))[0])
    assert not paths[-1].parent.exists()
