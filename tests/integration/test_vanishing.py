"""Updates that a copy in bf16 does not show: the estimate, the measurement, and what a run says of it."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host
import numpy as np
import pytest
import torch
from needs import needs_vllm

from curricula_trl.ranks import Ranks
from curricula_trl.vanishing import warn_of_vanishing
from curricula_vllm.precision.rounding import surviving_share


def test_the_estimate_by_hand() -> None:
    # Next to 1, bf16 is 2^-7 above and 2^-8 below; half of that is what rounding forgives.
    ones = torch.ones(1000)
    assert surviving_share([ones], 2.0**-7, torch.bfloat16) == 1.0
    assert surviving_share([ones], 2.0**-8 * 0.9, torch.bfloat16) == 0.5
    assert surviving_share([ones], 2.0**-9 * 0.9, torch.bfloat16) == 0.0
    assert surviving_share([ones], 2.0**-9 * 0.9, torch.float16) == 1.0
    small = torch.full((3000,), 2.0**-20)
    assert surviving_share([ones, small], 1e-6, torch.bfloat16) == pytest.approx(0.75)
    assert surviving_share([torch.ones(0)], 1e-6, torch.bfloat16) is None
    assert surviving_share([], 1e-6, torch.bfloat16) is None


def test_a_sample_is_near_the_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(size, generator=generator) * 0.02 for size in ((300, 200), (7,), (1000, 90))]
    whole = surviving_share(weights, 1e-5, torch.bfloat16, sample=10**9)
    sampled = surviving_share(weights, 1e-5, torch.bfloat16, sample=5000)
    assert whole is not None
    assert sampled == pytest.approx(whole, rel=0.2)


def rows() -> list[Any]:
    from curricula_vllm.precision.model import Row

    ids = host.tokenizer()(["easy:1=", "hard:22="])["input_ids"]
    return [Row(ids[0], [5, 6, 7, 8]), Row(ids[1], [9, 10, 11])]


def test_a_copy_in_bf16_loses_small_updates_of_weights_that_it_can_hold() -> None:
    from curricula_vllm.precision.updates import lost_updates

    model = host.model(initializer_range=0.1).eval()
    model.to(torch.bfloat16).float()  # as a checkpoint in bf16 is loaded
    before = [weight.clone() for weight in model.parameters()]
    found = lost_updates(model, rows(), 1e-5, 3)
    moved = differ(model, before)
    once = host.model(initializer_range=0.1).eval()
    once.to(torch.bfloat16).float()
    lost_updates(once, rows(), 1e-5, 1)
    moved_first = differ(once, before)
    assert moved == pytest.approx(found["updates"], rel=0.02)  # three steps may lead back
    assert found["survived"]["bf16"] < 0.05 < found["survived"]["fp16"]
    assert found["updates"] == moved_first
    (first, _, last) = found["steps"]
    assert last["moved"]["bf16"] < 0.2 * last["moved"]["master"]
    assert first["moved"]["master"] < last["moved"]["master"]
    assert last["apart"]["fp16"] < last["apart"]["bf16"]


def differ(model: Any, before: list[torch.Tensor]) -> int:
    return sum(int((weight != old).sum()) for weight, old in zip(model.parameters(), before, strict=True))


def test_updates_are_weights_that_moved_not_gradients() -> None:
    from curricula_vllm.precision.updates import lost_updates

    # Next to .1 a step of 1e-10 is lost in 32 bits already: only the smallest weights move.
    model = host.model(initializer_range=0.1).eval()
    before = [weight.clone() for weight in model.parameters()]
    found = lost_updates(model, rows(), 1e-10, 1)
    assert found["updates"] == differ(model, before)
    assert found["updates"] < 0.1 * sum(weight.numel() for weight in before)
    assert found["survived"]["bf16"] <= 1


def test_what_a_copy_is_off_by_at_the_start_is_no_change() -> None:
    from curricula_vllm.precision.updates import lost_updates

    # Weights that bf16 cannot hold: their copy is off by far more than an update, and that stays.
    found = lost_updates(host.model(initializer_range=0.5).eval(), rows(), 1e-8, 1)
    (step,) = found["steps"]
    assert step["moved"]["bf16"] < 0.01
    assert step["apart"]["bf16"] < 0.01


@pytest.mark.parametrize(
    ("most", "scale", "finite"), [(2.0**40, 2.0**16, True), (2.0**12, 2.0**12, True), (0.0, 1.0, False)]
)
def test_a_scale_of_the_loss_is_halved_until_no_gradient_overflows(
    monkeypatch: pytest.MonkeyPatch, most: float, scale: float, finite: bool
) -> None:
    from curricula_vllm.precision import jobs, model
    from curricula_vllm.precision.plan import Plan

    policy = torch.nn.Linear(2, 1)
    tried: list[float] = []

    def loss(module: Any, _: Any, backward: Any) -> bool:
        value = module.weight.sum()
        backward(value)
        tried.append(float(module.weight.grad.max()))
        if tried[-1] > most:
            module.weight.grad.fill_(torch.inf)
        return True

    monkeypatch.setattr(model, "load", lambda _: policy)
    monkeypatch.setattr(model, "policy_loss", loss)
    found = {"tokens": {"prompts": [[5]]}, "sample": {"tokens": [[6, 7]]}}
    done = jobs.step(Plan("m", [], False, 8, 0, 1e-6, 1), found)
    assert done == {"logits": True, "gradients": finite, "scale": scale, "tokens": 2}
    assert tried == [2.0**power for power in range(16, int(np.log2(scale)) - 1, -1)]


def test_a_step_in_fp16_that_overflows_is_seen() -> None:
    from curricula_vllm.precision.model import arithmetic, policy_loss

    model = host.model(initializer_range=0.1).eval()
    with arithmetic("fp16"):
        assert policy_loss(model, rows(), lambda loss: loss.backward())
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(1e6)
    with arithmetic("fp16"):
        assert not policy_loss(model, rows(), lambda loss: None)


def test_the_head_in_fp32_is_undone() -> None:
    from curricula_vllm.precision.model import arithmetic, head_in_fp32, logits_of

    model, row = host.model().eval(), rows()[0]
    with torch.no_grad(), arithmetic("bf16"):
        before = logits_of(model, row)
        with head_in_fp32(model):
            inside = logits_of(model, row)
        after = logits_of(model, row)
    assert (before.dtype, inside.dtype, after.dtype) == (torch.bfloat16, torch.float32, torch.bfloat16)
    assert torch.equal(before, after)


@pytest.mark.parametrize(
    ("dtype", "rate", "said"), [("bfloat16", 1e-6, True), ("float32", 1e-6, False), ("bfloat16", 1e-2, False)]
)
def test_a_run_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture, dtype: str, rate: float, said: bool) -> None:
    needs_vllm()
    trainer = host.trainer(tmp_path, learning_rate=rate)
    shown = {"model_config": {"dtype": f"torch.{dtype}"}}
    trainer.vllm_generation = SimpleNamespace(mode="server", vllm_client=SimpleNamespace(get_server_info=lambda: shown))
    ranks = Ranks(trainer.accelerator)
    with caplog.at_level(logging.WARNING, "curricula"):
        warn_of_vanishing(trainer, ranks)
        assert not caplog.records, "transformers generates"
        trainer.use_vllm = True
        warn_of_vanishing(trainer, ranks)
    assert len(caplog.records) == said
    if said:
        # What the generator gets of adapters is their product, merged into other weights.
        caplog.clear()
        trainer.model.peft_config = {}
        warn_of_vanishing(trainer, ranks)
        assert not caplog.records, "adapters"
        del trainer.model.peft_config
        warn_of_vanishing(trainer, ranks)
        assert "at a learning rate of 1e-06 about 9" in caplog.records[0].getMessage()
        caplog.clear()
        trainer.model.to(torch.bfloat16)
        warn_of_vanishing(trainer, ranks)
        assert not caplog.records, "weights in bf16 on both sides"
