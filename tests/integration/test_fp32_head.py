"""The trainer's logits in 32 bits: as TRL casts them, and with LoRA on a tied head, where TRL cannot."""

from pathlib import Path
from typing import Any

import pytest
import torch
from host import model, trainer
from peft import LoraConfig

from curricula import CurriculaValueError
from curricula_trl import CurriculumSampler
from curricula_trl.fp32 import fp32_head, head_dtype

ON = {"recipe": {"fp32_head": True}}


def policy(tied: bool = False) -> Any:
    return model(tie_word_embeddings=tied).bfloat16()


def scored(host: Any) -> torch.Tensor:
    """Log-probabilities of some tokens, as TRL's loss sees them."""
    ids = torch.arange(3, 15).view(2, 6)
    return host._get_per_token_logps_and_entropies(host.model, ids, torch.ones_like(ids), 5)[0].detach()


def by_hand(host: Any) -> torch.Tensor:
    base = host.model.get_base_model() if hasattr(host.model, "get_base_model") else host.model
    ids = torch.arange(3, 15).view(2, 6)
    hidden = base.base_model(input_ids=ids).last_hidden_state[:, :-1]
    logits = hidden.float() @ base.get_output_embeddings().weight.float().T
    return logits.log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0].detach()


@pytest.mark.parametrize("tied", [False, True])
def test_as_trl_casts_it(tmp_path: Path, tied: bool) -> None:
    ours = trainer(tmp_path / "ours", model=policy(tied))
    assert head_dtype(ours) == "bfloat16"
    CurriculumSampler(ON).attach(ours)
    theirs = trainer(tmp_path / "theirs", model=policy(tied), cast_lm_head_to_fp32=True)
    assert head_dtype(ours) == head_dtype(theirs) == "float32"
    assert torch.equal(scored(ours), scored(theirs))
    torch.testing.assert_close(scored(ours), by_hand(ours), rtol=0, atol=1e-6)
    logits = [host.model(torch.arange(3, 9)[None]).logits for host in (ours, theirs)]
    assert logits[0].dtype == logits[1].dtype == torch.float32
    assert torch.equal(*logits)
    before = {name: value.clone() for name, value in ours.model.named_parameters()}
    ours.train()
    theirs.train()
    head = "lm_head.weight" if not tied else "model.embed_tokens.weight"
    moved = dict(ours.model.named_parameters())[head]
    assert moved.dtype == torch.float32
    assert not torch.equal(moved, before[head])


def test_without_it_the_logits_are_those_of_the_model(tmp_path: Path) -> None:
    host = trainer(tmp_path, model=policy())
    CurriculumSampler().attach(host)
    assert head_dtype(host) == "bfloat16"
    assert (scored(host) - by_hand(host)).abs().max() > 1e-4


def test_lora_on_a_tied_head_trains(tmp_path: Path) -> None:
    lora = {"peft_config": LoraConfig(r=4, target_modules=["q_proj", "v_proj"])}
    with pytest.raises(AttributeError):
        trainer(tmp_path / "theirs", model=policy(tied=True), cast_lm_head_to_fp32=True, trainer=lora)
    host = trainer(tmp_path, model=policy(tied=True), trainer=lora)
    CurriculumSampler(ON).attach(host)
    torch.testing.assert_close(scored(host), by_hand(host), rtol=0, atol=1e-6)
    before = {name: value.clone() for name, value in host.model.named_parameters() if value.requires_grad}
    host.train()
    changed = {
        name for name, value in host.model.named_parameters() if name in before and (value != before[name]).any()
    }
    assert changed
    torch.testing.assert_close(scored(host), by_hand(host), rtol=0, atol=1e-6)


def test_an_adapter_on_the_head_is_refused(tmp_path: Path) -> None:
    adapted = LoraConfig(r=4, target_modules=["q_proj", "lm_head"])
    with pytest.raises(ValueError, match="adapter to `lm_head`"):  # by TRL itself
        trainer(tmp_path, model=policy(), trainer={"peft_config": adapted})
    saved = LoraConfig(r=4, target_modules=["q_proj"], modules_to_save=["lm_head"])
    host = trainer(tmp_path, model=policy(), trainer={"peft_config": saved})
    said = r"recipe.fp32_head: expected a head without an adapter; got "
    with pytest.raises(CurriculaValueError, match=said) as caught:
        CurriculumSampler(ON).attach(host)
    assert "\n" not in str(caught.value)


def test_every_trainer_of_a_model_has_it(tmp_path: Path) -> None:
    kept = policy()
    first = trainer(tmp_path / "first", model=kept)
    sampler = CurriculumSampler(ON).attach(first)
    sampler.detach()
    forward = kept.forward
    fp32_head(first)
    assert kept.forward == forward, "once for a trainer"
    second = trainer(tmp_path / "second", model=kept)
    assert (scored(second) - by_hand(second)).abs().max() > 1e-5, "TRL's own head is on top of ours"
    CurriculumSampler(ON).attach(second)
    torch.testing.assert_close(scored(second), by_hand(second), rtol=0, atol=1e-6)


def test_a_model_that_was_cast_since_is_computed_in_32_bits(tmp_path: Path) -> None:
    host = trainer(tmp_path, model=policy())
    CurriculumSampler(ON).attach(host)
    host.model.to(torch.bfloat16)
    assert host.model(torch.arange(3, 9)[None]).logits.dtype == torch.float32
    torch.testing.assert_close(scored(host), by_hand(host), rtol=0, atol=1e-6)
