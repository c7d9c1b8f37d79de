"""Refill in TRL's real trainers: what is missing is generated again, and nothing else about a run changes."""

import logging
import math
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from host import Trace, dataset, length, reward, trainer, weights_digest
from trl import GRPOTrainer, RLOOTrainer

from curricula import CheckpointError, CurriculaRuntimeError, CurriculaValueError
from curricula_trl import CurriculumSampler
from curricula_trl.rounds import Round

SIZE = 4


class Rounds:
    """Records each call of TRL's own generation, below the curriculum, and each batch that is trained on, above it."""

    def __init__(self, host: Any) -> None:
        self.sizes: list[int] = []
        self.rewards: list[np.ndarray] = []
        self.prompts: list[list[str]] = []
        self.batches: list[dict[str, torch.Tensor]] = []
        self.calls: list[int] = []
        rounds = self
        inner = type(host)

        class Below(inner):  # type: ignore[misc, valid-type]
            def _generate_and_score_completions(self, inputs: Any) -> Any:
                rounds.sizes.append(len(inputs) // self.num_generations)
                rounds.prompts.append([row["prompt"] for row in inputs[:: self.num_generations]])
                return super()._generate_and_score_completions(inputs)

            def _calculate_rewards(self, *args: Any) -> Any:
                found = super()._calculate_rewards(*args)
                rounds.rewards.append(found.detach().cpu().numpy())
                return found

            def _prepare_inputs(self, generation_batch: Any) -> Any:
                before = len(rounds.sizes)
                output = super()._prepare_inputs(generation_batch)
                if len(rounds.sizes) > before:
                    rounds.calls.append(len(rounds.sizes) - before)
                    parts = self._buffered_inputs
                    joined = {
                        name: torch.cat([part[name] for part in parts])
                        for name, value in parts[0].items()
                        if isinstance(value, torch.Tensor) and value.dim()
                    }
                    rounds.batches.append({**joined, "num_items_in_batch": parts[0]["num_items_in_batch"]})
                return output

        Below.__name__ = inner.__name__
        host.__class__ = Below


def run(folder: Path, refill: dict[str, Any], config: dict[str, Any] | None = None, **settings: Any) -> Any:
    host = trainer(folder, **{"per_device_train_batch_size": 32, **settings})
    rounds = Rounds(host)
    sampler = CurriculumSampler({"refill": refill, **(config or {})}).attach(host)
    host.train()
    return host, rounds, sampler


def mixed(rewards: np.ndarray) -> np.ndarray:
    groups = rewards.reshape(-1, SIZE)
    return groups.max(axis=1) > groups.min(axis=1)


def texts(host: Any, batch: dict[str, torch.Tensor]) -> list[str]:
    decoded = host.processing_class.batch_decode(batch["prompt_ids"], skip_special_tokens=True)
    return [text.replace(" ", "") for text in decoded]


def test_off_by_default(tmp_path: Path) -> None:
    _, rounds, sampler = run(tmp_path, {})
    assert rounds.calls == [1, 1, 1, 1]
    assert not any(name.startswith(("refill", "wasted")) for name in sampler.metrics())


def test_only_what_is_missing_is_generated_again(tmp_path: Path) -> None:
    """R8: every further round has the deficit's size; R1: exhaustion shrinks the batch and says so."""
    _, rounds, sampler = run(tmp_path, {"rounds": 3})
    number = 0
    refilled = unfilled = 0
    for calls, batch in zip(rounds.calls, rounds.batches, strict=True):
        missing = 8
        for turn in range(calls):
            assert rounds.sizes[number] == missing
            missing -= int(mixed(rounds.rewards[number]).sum())
            refilled += int(mixed(rounds.rewards[number]).sum()) if turn else 0
            number += 1
        assert calls == 4 or missing == 0
        unfilled += missing
        assert len(batch["advantages"]) == 32
        assert int((batch["advantages"].abs() > 1e-6).sum()) == 0 or missing < 8
    metrics = sampler.metrics()
    assert number == len(rounds.sizes) == metrics["refill_rounds"]
    assert metrics["refill_refilled"] == refilled > 0
    assert metrics["refill_unfilled"] == unfilled
    assert metrics["told"] == sum(rounds.sizes)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_the_batch_is_that_of_its_groups(tmp_path: Path, scale: str) -> None:
    """Rows, masks, advantages and token counts are those of one round with the same groups."""
    host, rounds, _ = run(tmp_path, {"rounds": 20}, scale_rewards=scale, max_steps=2)
    start = 0
    for calls, batch in zip(rounds.calls, rounds.batches, strict=True):
        kept: dict[str, np.ndarray] = {}
        for number in range(start, start + calls):
            groups = rounds.rewards[number].reshape(-1, SIZE)
            kept |= {
                prompt: group
                for prompt, group, keep in zip(rounds.prompts[number], groups, mixed(groups), strict=True)
                if keep
            }
        start += calls
        assert calls > 1
        assert len(kept) == 8
        spread = np.concatenate(list(kept.values())).std(ddof=1)
        found: dict[str, list[float]] = {}
        for text, advantage in zip(texts(host, batch), batch["advantages"].tolist(), strict=True):
            found.setdefault(text, []).append(advantage)
        assert set(found) == set(kept)
        for prompt, group in kept.items():
            scaled = {"group": group.std(ddof=1) + 1e-4, "batch": spread + 1e-4, "none": 1.0}[scale]
            np.testing.assert_allclose(sorted(found[prompt]), sorted((group - group.mean()) / scaled), atol=1e-4)
        assert batch["num_items_in_batch"] == batch["completion_mask"].sum()
        ends = batch["completion_mask"].sum(dim=1)
        for row, end in zip(batch["completion_mask"].tolist(), ends.tolist(), strict=True):
            assert row == [1] * end + [0] * (len(row) - end)
        assert all(row == sorted(row) for row in batch["prompt_mask"].tolist())


def test_no_prompt_comes_twice_into_a_batch(tmp_path: Path) -> None:
    """R4: by default prompts of dropped groups are used up for the step; kept ones always are."""
    _, rounds, _ = run(tmp_path, {"rounds": 4})
    start = 0
    for calls in rounds.calls:
        drawn = list(chain(*rounds.prompts[start : start + calls]))
        assert len(drawn) == len(set(drawn))
        start += calls


def test_prompts_of_dropped_groups_may_come_again(tmp_path: Path) -> None:
    """R4: with the flag, a dropped prompt may be drawn again at once, and a kept one still may not."""
    data = dataset({"hard": 12, "frontier": 12})
    _, rounds, _ = run(tmp_path, {"rounds": 6, "consumed": False}, train_dataset=data)
    start, again = 0, 0
    for calls in rounds.calls:
        kept: set[str] = set()
        dropped: set[str] = set()
        for number in range(start, start + calls):
            assert not kept & set(rounds.prompts[number])
            again += len(dropped & set(rounds.prompts[number]))
            for prompt, keep in zip(rounds.prompts[number], mixed(rounds.rewards[number]), strict=True):
                (kept if keep else dropped).add(prompt)
        start += calls
    assert again > 0


class Failing:
    """A reward that some calls, or some environments, have no answer to."""

    __name__ = "failing"

    def __init__(self, calls: set[int], names: tuple[str, ...] = ()) -> None:
        self.calls, self.names, self.count = calls, names, 0

    def __call__(self, completions: list[str], environment: list[str], **_: Any) -> list[float | None]:
        self.count += 1
        lost = self.count in self.calls
        return [
            None if lost or name in self.names else float(number % 2)
            for number, (_, name) in enumerate(zip(completions, environment, strict=True))
        ]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times: list[float] = []
    monkeypatch.setattr("curricula_trl.refill.time.sleep", times.append)
    return times


def test_failures_are_refilled_beside_the_rounds(
    tmp_path: Path, slept: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """R4, R5: a service that is down for three calls costs pauses and a warning, no round, and no step."""
    _, rounds, sampler = run(tmp_path, {"rounds": 1, "pause": 0.5}, reward_funcs=Failing({1, 2, 3}), max_steps=2)
    assert rounds.calls == [4, 1]
    assert rounds.sizes == [8] * 5
    assert slept == [0.5, 1.0, 2.0]
    metrics = sampler.metrics()
    assert metrics["wasted_unscorable"] == 24
    assert metrics["refill_unfilled"] == metrics["refill_empty"] == 0
    assert "every group of a round failed" in caplog.text


def test_a_service_that_stays_down_ends_a_run_only_when_asked(
    tmp_path: Path, slept: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """R5: warned and slowed down for every step; `abort_after` ends it."""
    settings = {"reward_funcs": Failing(set(range(999))), "max_steps": 5}
    host, rounds, sampler = run(tmp_path, {"rounds": 1, "retries": 2}, **settings)
    assert host.state.global_step == 5
    assert rounds.calls == [4] * 5
    assert sampler.metrics()["refill_empty"] == 5
    warned = [record.getMessage() for record in caplog.records if "no group to train on" in record.getMessage()]
    assert len(warned) == 3  # in 1, 2 and 4 steps in a row
    with pytest.raises(CurriculaRuntimeError, match="3 steps in a row had no group to train on"):
        run(tmp_path, {"rounds": 1, "retries": 0, "abort_after": 3}, **settings)
    assert max(slept) <= 60


def test_single_failures_do_not_use_up_rounds(tmp_path: Path, slept: list[float]) -> None:
    """R4: some groups of every round fail; they are generated again until the retries are used up too."""
    _, rounds, sampler = run(
        tmp_path, {"rounds": 1, "retries": 5}, reward_funcs=Failing(set(), ("never", "hard", "easy"))
    )
    assert max(rounds.calls) > 2
    metrics = sampler.metrics()
    assert set(metrics) & {"wasted_zero_variance", "wasted_unscorable"} == {"wasted_unscorable"}


def alike(completions: list[str], environment: list[str], **_: Any) -> list[float]:
    """Only the frontier ever differs."""
    return [float(name == "frontier" and number % 2) for number, name in enumerate(environment)]


def test_exhaustion_raises_where_asked(tmp_path: Path) -> None:
    """R1: one clear error."""
    with pytest.raises(CurriculaRuntimeError, match=r"got \d groups too few after 1 further rounds; raise refill"):
        run(tmp_path, {"rounds": 1, "on_exhaustion": "raise"}, reward_funcs=alike)


def test_exhaustion_pads_with_the_best_known(tmp_path: Path) -> None:
    """R1: one more round, for prompts whose groups were trained on before; the run's own figures leave it out."""
    data = dataset({"never": 200, "frontier": 12})
    settings = {"reward_funcs": alike, "train_dataset": data, "max_steps": 8}
    evenly = {"bandit": {"type": "size_proportional", "most_draws": 1}, "objective": {"type": "uniform"}}
    _, rounds, sampler = run(tmp_path, {"rounds": 1, "on_exhaustion": "pad"}, {"curriculum": evenly}, **settings)
    metrics = sampler.metrics()
    assert metrics["refill_padded"] > 0
    known: set[str] = set()
    start = 0
    for calls in rounds.calls:
        seen = set(chain(*rounds.prompts[start : start + 2]))
        if calls == 3:
            best = [prompt for prompt in rounds.prompts[start + 2] if prompt in known]
            assert len(best) == min(len(known - seen), rounds.sizes[start + 2])
        for number in range(start, start + calls):
            known |= {p for p, keep in zip(rounds.prompts[number], mixed(rounds.rewards[number]), strict=True) if keep}
        start += calls
    picked = sum(rounds.sizes) - metrics["draws"]
    assert picked > 0
    assert metrics["told"] == metrics["draws"]


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_variable_batch_leaves_out_what_is_not_trained_on(tmp_path: Path, steps: int) -> None:
    """R6, R3: only groups with a signal, and as few others as make the rows divide over the micro-batches."""
    refill = {"batch": "variable"}
    settings = {"per_device_train_batch_size": 32 // steps, "steps_per_generation": steps, "max_steps": 4 * steps}
    _, rounds, sampler = run(tmp_path, refill, **settings)
    assert set(rounds.calls) == {1}
    sizes = set()
    for batch, rewards in zip(rounds.batches, rounds.rewards, strict=True):
        kept = int(mixed(rewards).sum())
        assert len(batch["advantages"]) % steps == 0
        assert len(batch["advantages"]) == SIZE * max(1, kept)
        sizes.add(len(batch["advantages"]))
        assert batch["num_items_in_batch"] == batch["completion_mask"].sum()
    assert len(sizes) > 1
    assert sampler.metrics()["wasted_zero_variance"] > 0


def test_rows_divide_over_micro_batches_that_are_no_multiple_of_a_group(tmp_path: Path) -> None:
    """R3: 8 steps of 3 rows: the batch is a multiple of 24 rows, whatever is dropped."""
    settings = {"per_device_train_batch_size": 3, "steps_per_generation": 16, "max_steps": 32}
    _, rounds, _ = run(tmp_path, {"batch": "variable"}, **settings)
    assert rounds.sizes == [12, 12]
    for batch, rewards in zip(rounds.batches, rounds.rewards, strict=True):
        # A step without any group to train on keeps one row for each of its parts.
        assert len(batch["advantages"]) == 16 * max(1, math.ceil(mixed(rewards).sum() * SIZE / 16))


def test_what_was_thrown_away_is_counted_by_cause(tmp_path: Path) -> None:
    """R6: every group generated is trained on, refilled in, waiting, or wasted with a cause."""
    _, rounds, sampler = run(tmp_path, {"rounds": 2}, {"curriculum": {"filters": [
        {"type": "overlong", "most": 0.75}, {"type": "zero_variance"}]}})  # fmt: skip
    metrics = sampler.metrics()
    wasted = {name: value for name, value in metrics.items() if name.startswith("wasted_")}
    assert {"wasted_zero_variance", "wasted_overlong"} <= set(wasted)
    trained = 8 * len(rounds.calls) - metrics["refill_unfilled"]
    assert sum(rounds.sizes) == trained + sum(wasted.values()) + metrics["refill_spare"]
    kept = sum(value for name, value in metrics.items() if name.endswith("/kept"))
    assert kept == trained + metrics["refill_spare"]


def test_steps_and_learning_rates_are_those_without_refill(tmp_path: Path) -> None:
    """R7: generation rounds are counted apart, and no schedule sees them."""
    settings = {"max_steps": 5, "lr_scheduler_type": "linear", "steps_per_generation": 2, "num_iterations": 2}
    plain, few, _ = run(tmp_path, {}, per_device_train_batch_size=16, **settings)
    host, many, sampler = run(tmp_path, {"rounds": 4}, per_device_train_batch_size=16, **settings)
    assert len(many.sizes) > len(few.sizes)
    rates = [[entry["learning_rate"] for entry in run.state.log_history if "loss" in entry] for run in (plain, host)]
    assert rates[0] == rates[1]
    assert host.state.global_step == plain.state.global_step == 5
    assert len(many.calls) == len(few.calls) == 2
    assert sampler.metrics()["refill_rounds"] == len(many.sizes)


def test_a_refilled_run_resumes_exactly(tmp_path: Path) -> None:
    """Resumed at every step, also in the middle of a block: the same rounds, weights and counts."""
    settings = {"steps_per_generation": 2, "per_device_train_batch_size": 16, "max_steps": 7}
    settings |= {"save_strategy": "steps", "save_steps": 1}
    mix = {"refill": {"rounds": 2, "on_exhaustion": "pad"}}

    def once(folder: Path, resume: Path | None = None) -> Any:
        host = trainer(folder, **settings)
        sampler = CurriculumSampler(mix).attach(host)
        trace = Trace(host)
        host.train(resume_from_checkpoint=None if resume is None else str(resume))
        # What a predictor says of itself depends on when it is asked: it learns beside the steps. So does the clock.
        late = ("predictor/", "wall_time", "gpu_hours")
        told = {name: value for name, value in sampler.metrics().items() if not name.startswith(late)}
        return trace.rounds, weights_digest(host), told

    rounds, weights, metrics = once(tmp_path / "whole")
    assert metrics["refill_refilled"] > 0
    for step in range(1, 7):
        rest, again, told = once(tmp_path / f"from-{step}", tmp_path / "whole" / f"checkpoint-{step}")
        assert again == weights, step
        assert told == metrics, step
        strip = [{name: row[name] for name in ("prompts", "completions", "rewards")} for row in rest]
        whole = [{name: row[name] for name in ("prompts", "completions", "rewards")} for row in rounds]
        assert strip == whole[len(whole) - len(strip) :], step


def test_an_account_that_cannot_be_is_refused(tmp_path: Path) -> None:
    _, _, sampler = run(tmp_path, {"rounds": 1})
    refill = sampler._binding.refill
    before = refill.state()
    for wrong in (
        {},
        {**before, "counts": {}},
        {**before, "wasted": {"x": -1}},
        {**before, "known": [80]},
        {**before, "wasted": {"x": 1}},
        {**before, "spare": -1},
        {**before, "spare": True},
    ):
        with pytest.raises(CheckpointError, match="refill: expected its saved account"):
            refill.load(wrong, [], 80)
    with pytest.raises(CheckpointError, match="refill: expected its saved account"):
        refill.load({**before, "spare": 2}, [None], 80)
    assert refill.state() == before


@pytest.mark.parametrize("cls", [GRPOTrainer, RLOOTrainer])
def test_both_trainers_fill_their_batches(tmp_path: Path, cls: type) -> None:
    host = trainer(tmp_path, cls=cls, per_device_train_batch_size=32, max_steps=2)
    sampler = CurriculumSampler({"refill": {"rounds": 2}}).attach(host)
    host.train()
    metrics = sampler.metrics()
    assert metrics["refill_refilled"] > 0
    assert host.state.global_step == 2


def test_rounds_that_are_normalised_on_their_own_are_refused(tmp_path: Path) -> None:
    host = trainer(tmp_path, cls=RLOOTrainer, normalize_advantages=True)
    with pytest.raises(CurriculaValueError, match="set normalize_advantages=False, or leave refill out"):
        CurriculumSampler({"refill": {"rounds": 2}}).attach(host)


def test_functions_that_are_normalised_one_by_one(tmp_path: Path) -> None:
    """F4 in the trainer: told by component, judged by success unless the mix says otherwise; the batch is one."""
    arguments = {"multi_objective_aggregation": "normalize_then_sum", "reward_funcs": [reward, length]}
    config = {"success": {"reward": "reward"}}
    _, rounds, sampler = run(tmp_path, {"rounds": 20}, config, max_steps=2, **arguments)
    assert sampler.metrics()["refill_refilled"] > 0
    for batch in rounds.batches:
        advantages = batch["advantages"]
        assert advantages.std() == pytest.approx(1.0, abs=1e-2)
    config["curriculum"] = {"filters": [{"type": "zero_variance", "on": "components"}]}
    _, _, sampler = run(tmp_path, {}, config, max_steps=2, **arguments)
    metrics = sampler.metrics()
    kept = sum(value for name, value in metrics.items() if name.endswith("/kept"))
    _, rounds, sampler = run(tmp_path, {}, {"success": {"reward": "reward"}}, max_steps=2, **arguments)
    assert kept > sum(value for name, value in sampler.metrics().items() if name.endswith("/kept"))


def test_what_has_no_row_for_each_rollout_is_said(tmp_path: Path) -> None:
    host = trainer(tmp_path, per_device_train_batch_size=32)

    class WithImages(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            return {**super()._generate_and_score_completions(inputs), "pixel_values": torch.zeros(7, 3, 2)}

    host.__class__ = WithImages
    CurriculumSampler({"refill": {"rounds": 1}}).attach(host)
    with pytest.raises(CurriculaRuntimeError, match="'pixel_values', which has no row of tokens for each rollout"):
        host.train()


def test_alerts_are_rare(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """R1: an exhausted refill is said the 1st, 2nd, 4th, 8th time."""
    with caplog.at_level(logging.WARNING, logger="curricula"):
        _, _, sampler = run(tmp_path, {"rounds": 1}, reward_funcs=alike, max_steps=9)
    said = [record for record in caplog.records if "groups are still missing" in record.getMessage()]
    assert len(said) == int(math.log2(sampler.metrics()["refill_exhausted"])) + 1 >= 2


def test_spare_groups_outlive_a_round_that_fails(tmp_path: Path) -> None:
    _, _, sampler = run(tmp_path, {"rounds": 1}, max_steps=1)
    refill = sampler._binding.refill
    kept: list[Any] = [object()]
    refill.spare, before = kept, refill.counts["carried"]
    draws = sampler._binding.curriculum.ask(2, group_size=SIZE)
    first = Round({}, draws, [(False, "zero_variance")] * 2, None)

    def play(*_: Any) -> Any:
        raise CurriculaRuntimeError("no generation")

    with pytest.raises(CurriculaRuntimeError, match="no generation"):
        refill.complete(SimpleNamespace(num_generations=SIZE), first, play)
    assert refill.spare is kept
    assert refill.counts["carried"] == before
