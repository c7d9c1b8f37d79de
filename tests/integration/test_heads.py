"""What of a head is read: whole, split over workers, from an engine that sleeps, from a server; and what TRL sends."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host
import pytest
import torch
from needs import needs_vllm
from peft import LoraConfig
from torch import nn

from curricula import CurriculaRuntimeError
from curricula_trl import CurriculumSampler
from curricula_trl.heads import Heads, head_name
from curricula_trl.mismatch import Sides
from curricula_vllm.reading import EXTENSION, Extension, read

NAME = "lm_head.weight"


class Processor:
    """Computes with a copy of the head, as vLLM's does on a CPU."""

    head_dtype = None

    def __init__(self, head: Any) -> None:
        self.packed = head.weight.clone()

    def _apply_head(self, head: Any, hidden: torch.Tensor, bias: None) -> torch.Tensor:
        return hidden @ self.packed.T


def engine(weight: torch.Tensor, first: int = 0, last: int | None = None) -> Any:
    """A model of vLLM's that holds some rows of a head."""
    last = len(weight) if last is None else last
    padded = torch.cat([weight[first:last], torch.zeros(3, weight.shape[1], dtype=weight.dtype)])
    shard = SimpleNamespace(org_vocab_start_index=first, org_vocab_end_index=last)
    head = SimpleNamespace(weight=padded, shard_indices=shard)
    return SimpleNamespace(lm_head=head, logits_processor=Processor(head))


class Generation:
    """TRL's, with one parameter, and what an update does of it."""

    mode = "colocate"

    def __init__(self, weight: torch.Tensor, *engines: Any, fault: str = "") -> None:
        self.weight, self.engines, self.fault = weight, engines, fault
        worker = SimpleNamespace(model_runner=SimpleNamespace(model=engines[0]))
        self.llm = SimpleNamespace(llm_engine=SimpleNamespace(model_executor=SimpleNamespace(driver_worker=worker)))

    def _iter_named_params(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield "model.embed_tokens.weight", torch.zeros(2, 2)
        yield NAME, self.weight

    def sync_weights(self) -> None:
        sent = dict(self._iter_named_params())[NAME]
        for place, model in enumerate(self.engines):
            shard = model.lm_head.shard_indices
            first, last = shard.org_vocab_start_index, shard.org_vocab_end_index
            if self.fault != f"weight {place}":
                model.lm_head.weight[: last - first] = sent[first:last].to(model.lm_head.weight.dtype)
            if self.fault != f"packed {place}":
                model.logits_processor.packed = model.lm_head.weight.clone()


def weights(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(500, 24, generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("fault", "stale"), [("", False), ("weight 0", True), ("packed 0", True)])
def test_after_an_update(dtype: torch.dtype, fault: str, stale: bool) -> None:
    generation = Generation(weights(), engine(weights(dtype)), fault=fault)
    heads = Heads(generation, NAME, is_main=True)
    assert heads.is_stale() is None, "there was no update"
    generation.sync_weights()
    assert heads.is_stale() is False, "what is sent is what was there"
    generation.weight = generation.weight + 1e-3
    generation.sync_weights()
    assert heads.is_stale() is stale
    generation.fault = ""
    generation.sync_weights()
    assert heads.is_stale() is False
    heads.close()
    assert generation.sync_weights.__self__ is generation


@pytest.mark.parametrize(("place", "seen"), [(0, [True, False]), (1, [False, True])])
def test_a_head_that_is_split_is_read_part_by_part(place: int, seen: list[bool]) -> None:
    found = []
    for first, last in ((0, 256), (256, 500)):
        generation = Generation(weights(), engine(weights(), first, last))
        heads = Heads(generation, NAME, is_main=first == 0)
        generation.weight = generation.weight * 1.5
        generation.fault = "weight 0" if place == (first > 0) else ""
        generation.sync_weights()
        found.append(heads.is_stale())
    assert found == seen


def test_it_is_read_before_the_engine_sleeps() -> None:
    generation = Generation(weights(), engine(weights()), fault="weight 0")
    heads = Heads(generation, NAME, is_main=True)
    generation.weight = generation.weight + 1.0
    generation.sync_weights()
    generation.engines[0].lm_head.weight = torch.empty(0)  # asleep
    assert heads.is_stale() is True


def test_heads_that_cannot_be_read() -> None:
    none = SimpleNamespace(lm_head=SimpleNamespace())
    packed, scaled = (
        SimpleNamespace(lm_head=SimpleNamespace(weight=torch.zeros(9, 9).to(dtype)))
        for dtype in (torch.int32, torch.float8_e4m3fn)
    )
    for model in (none, packed, scaled, SimpleNamespace()):
        assert read(model, [0], [0]) is None
    inner = SimpleNamespace(language_model=engine(weights()))
    assert torch.equal(read(inner, [3, 7], [2]).values, weights()[[3, 7]][:, [2]])
    named = engine(weights())
    for other in (
        SimpleNamespace(embed_out=named.lm_head, logits_processor=named.logits_processor),
        SimpleNamespace(model=SimpleNamespace(embed_tokens=named.lm_head), logits_processor=named.logits_processor),
    ):
        assert torch.equal(read(other, [3, 7], [2]).values, weights()[[3, 7]][:, [2]])
    diverged = Generation(weights() * torch.nan, engine(weights()))
    heads = Heads(diverged, NAME, is_main=True)
    diverged.sync_weights()
    assert heads.is_stale() is None
    assert heads.unread == "lm_head.weight, the head's weight, was sent with values that are not finite"
    for name, model, why in (
        (NAME, engine(weights()), ""),
        ("another.weight", engine(weights()), "another.weight, the head's weight, was not among the matrices that"),
        (None, engine(weights()), "the model that is trained has no head whose weight is sent to the generator"),
        (NAME, none, "the generator's head cannot be read (it is quantised, or under a name that is not known)"),
    ):
        generation = Generation(weights(), model)
        heads = Heads(generation, name, is_main=True)
        assert not heads.unread, "there was no update"
        if model is none:
            generation.engines = ()
        generation.sync_weights()
        assert heads.is_stale() is (None if why else False)
        assert heads.unread.startswith(why)
        assert bool(heads.unread) is bool(why)


class Client:
    """A server of two workers, each with a part of the head."""

    base_url = "http://server"

    def __init__(self, models: Any, extension: str) -> None:
        self.models, self.extension, self.asked = models, extension, 0

    def get_server_info(self) -> dict[str, Any]:
        return {"parallel_config": {"worker_extension_cls": self.extension}}

    def _post(self, url: str, json: Any) -> Any:
        self.asked += 1
        assert url == f"{self.base_url}/collective_rpc"
        workers = [SimpleNamespace(model_runner=SimpleNamespace(model=model)) for model in self.models]
        return {"results": [getattr(Extension, json["method"])(worker, *json["args"]) for worker in workers]}


def server(extension: str = EXTENSION) -> Any:
    generation = Generation(weights(), engine(weights(), 0, 256), engine(weights(), 256, 500))
    generation.mode = "server"
    generation.vllm_client = Client(generation.engines, extension)
    return generation


def test_a_server_is_asked_by_one_rank_for_all_parts() -> None:
    generation = server()
    other = Heads(generation, NAME, is_main=False)
    generation.sync_weights()
    assert other.is_stale() is None
    assert generation.vllm_client.asked == 0
    heads = Heads(generation, NAME, is_main=True)
    for fault, stale in (("", False), ("weight 1", True), ("packed 0", True)):
        generation.fault = fault
        generation.weight = generation.weight + 1e-4
        generation.sync_weights()
        assert heads.is_stale() is stale
    assert not heads.unread
    assert generation.vllm_client.asked == 3


def test_a_server_without_the_extension_is_not_asked() -> None:
    generation = server("")
    heads = Heads(generation, NAME, is_main=True)
    generation.sync_weights()
    assert heads.is_stale() is None
    assert heads.unread.startswith("the server does not show its head: `python -m curricula_vllm serve` does")
    assert generation.vllm_client.asked == 0


def test_an_update_waits_for_what_was_asked_after_the_one_before() -> None:
    generation, order, release = server(), [], threading.Event()
    post, sync = generation.vllm_client._post, generation.sync_weights

    def slow(*arguments: Any, **keywords: Any) -> Any:
        order.append("asked")
        release.wait(10)
        order.append("told")
        return post(*arguments, **keywords)

    generation.vllm_client._post = slow
    generation.sync_weights = lambda: order.append("update") or sync()
    heads = Heads(generation, NAME, is_main=True)
    generation.sync_weights()
    threading.Timer(0.3, release.set).start()
    generation.sync_weights()
    assert heads.is_stale() is False
    assert order == ["update", "asked", "told", "update", "asked", "told"]


def test_a_server_that_fails_is_said_where_all_ranks_are() -> None:
    generation = server()
    heads = Heads(generation, NAME, is_main=True)

    def fail(*_: Any, **__: Any) -> Any:
        raise CurriculaRuntimeError("gone")

    generation.vllm_client._post = fail
    generation.sync_weights()
    with pytest.raises(CurriculaRuntimeError, match="gone"):
        heads.is_stale()


@pytest.mark.parametrize(
    ("tied", "adapter"),
    [
        *((tied, adapter) for tied in (False, True) for adapter in (None, {"target_modules": "all-linear"})),
        (False, {"modules_to_save": ["lm_head"]}),  # a tied one is untied by peft
    ],
)
def test_the_name_is_the_one_that_trl_sends(tmp_path: Path, tied: bool, adapter: dict[str, Any] | None) -> None:
    needs_vllm()
    from trl.generation.vllm_generation import VLLMGeneration

    given = {} if adapter is None else {"trainer": {"peft_config": LoraConfig(r=2, **adapter)}}
    trainer = host.trainer(tmp_path, model=host.model(tie_word_embeddings=tied), **given)
    name = head_name(trainer.model)
    assert name == ("model.embed_tokens.weight" if tied else NAME)
    generation = VLLMGeneration.__new__(VLLMGeneration)
    plain = SimpleNamespace(is_fsdp=False, gather_params=lambda _: torch.no_grad())
    vars(generation).update(model=trainer.model, _dist=plain)
    assert name in {sent for sent, _ in generation._iter_named_params()}


def test_a_model_without_a_head_and_a_detached_trainer(tmp_path: Path) -> None:
    assert head_name(nn.Linear(2, 2)) is None
    trainer = host.trainer(tmp_path)
    assert Heads.of(trainer, is_main=True) is None
    trainer.use_vllm = True
    trainer.vllm_generation = Generation(weights(), engine(weights()))
    before = trainer.vllm_generation.sync_weights
    heads = Heads.of(trainer, is_main=True)
    again = Heads.of(trainer, is_main=True)
    assert again._sync == before
    again.close()
    assert trainer.vllm_generation.sync_weights == before
    assert heads is not again
    assert not {"sync_weights", "_iter_named_params"} & set(vars(trainer.vllm_generation)), "methods of its class again"


def test_what_wraps_a_generator_beside_it_is_left() -> None:
    generation, calls = Generation(weights(), engine(weights())), []
    sync = generation.sync_weights
    generation.sync_weights = inner = lambda: calls.append("inner") or sync()
    heads = Heads(generation, NAME, is_main=True)
    watched = generation.sync_weights
    generation.sync_weights = outer = lambda: calls.append("outer") or watched()
    heads.close()
    assert generation.sync_weights is outer
    generation.sync_weights()
    assert calls == ["outer", "inner"]
    assert heads.is_stale() is None, "it does not look any more"
    generation.sync_weights = inner
    Heads(generation, NAME, is_main=True).close()
    assert generation.sync_weights is inner


def attached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A trainer with a generator that stands for vLLM's in all that `attach` asks of it."""
    trainer = host.trainer(folder)
    trainer.use_vllm, trainer.vllm_generation = True, Generation(weights(), engine(weights()))
    monkeypatch.setattr("curricula_trl.sampler._check_server", lambda _: None)
    monkeypatch.setattr("curricula_trl.binding.sides_of", lambda *_: Sides("float32", ""))
    monkeypatch.setattr("curricula_trl.sampler.warn_of_vanishing", lambda *_: None)
    return trainer


def test_detached_or_not_attached_after_all_the_generator_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = attached(tmp_path, monkeypatch)
    generation = trainer.vllm_generation
    before = dict(vars(generation))
    sampler = CurriculumSampler().attach(trainer)
    assert isinstance(generation.sync_weights.__self__, Heads)
    sampler.detach()
    assert vars(generation) == before

    def fail(*_: Any) -> None:
        raise OSError("gone")

    monkeypatch.setattr("curricula_trl.sampler.warn_of_vanishing", fail)
    with pytest.raises(OSError, match="gone"):
        CurriculumSampler().attach(trainer)
    assert vars(generation) == before
