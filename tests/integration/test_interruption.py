"""Interrupted rollouts in TRL with transformers' generation: what they hold, what is trained on, what is told."""

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from host import dataset, reward, tokenizer, weights_digest
from interruption_host import ENDS, FORCED, LETTERS, MIX, SENTENCE, TOKENIZER, Record, check_row, model, trainer
from transformers import PreTrainedTokenizerFast

from curricula import read_log
from curricula_trl import CurriculumSampler
from curricula_trl.interruption.plan import Plan

LEAST, MOST = MIX["interruption"]["at"]
ANSWER = MIX["interruption"]["answer"]


def train(folder: Path, mix: dict[str, Any] | None = None, **arguments: Any) -> tuple[Any, CurriculumSampler, Record]:
    host = trainer(folder, **arguments)
    sampler = CurriculumSampler({**MIX, **(mix or {})}).attach(host)
    record = Record(host)
    host.train()
    return host, sampler, record


def log_probabilities(policy: Any, row: dict[str, Any]) -> torch.Tensor:
    """Of a row's completion, from its own tokens alone: no padding, no other row."""
    tokens = torch.tensor([[*row["prompt"], *row["tokens"]]])
    logits = policy(tokens).logits[0, len(row["prompt"]) - 1 : -1].float()
    return logits.log_softmax(-1)


def test_every_rollout_is_as_planned(tmp_path: Path) -> None:
    _, sampler, record = train(tmp_path, max_steps=12, per_device_train_batch_size=16)
    ways: dict[str, int] = {}
    for version, rows in enumerate(record.rounds):
        limits = Plan(MIX["seed"], (LEAST, MOST)).limits(version, len(rows))
        for row, limit in zip(rows, limits, strict=True):
            way = check_row(row, limit, ANSWER)
            ways[way] = ways.get(way, 0) + 1
    assert set(ways) == {"interrupted", "closed", "ended"}
    assert min(ways.values()) >= 2
    rows = [row for rows in record.rounds for row in rows]
    metrics = sampler.metrics()
    told = sum(metrics[f"{name}/tokens"] for name in sampler.curriculum.pool.environments)
    assert told == sum(sum(row["mask"]) for row in rows)
    for output, of_round in zip(record.outputs, record.rounds, strict=True):
        assert int(output["num_items_in_batch"]) == sum(sum(row["mask"]) for row in of_round)


def test_a_continuation_goes_on_from_the_rollouts_own_tokens(tmp_path: Path) -> None:
    # Nearly without chance every sampled token is the likeliest one after all tokens before it.
    host, _, record = train(tmp_path, temperature=1e-4, learning_rate=0.0, steps_per_generation=1)
    checked = 0
    for row in (row for rows in record.rounds for row in rows if row["interrupted"]):
        with torch.no_grad():
            likeliest = log_probabilities(host.model.eval(), row).argmax(-1).tolist()
        chosen = [token for token, mask in zip(row["tokens"], row["mask"], strict=True) if mask]
        assert chosen == [token for token, mask in zip(likeliest, row["mask"], strict=True) if mask]
        assert any(a != b for a, b in zip(row["tokens"], likeliest, strict=True)), "the sentence is no likely one"
        checked += 1
    assert checked > 8


@pytest.mark.parametrize("accumulation", [1, 2])
def test_log_probabilities_stay_with_their_tokens(tmp_path: Path, accumulation: int) -> None:
    # A generation for several steps makes TRL keep the log-probabilities of the policy that generated.
    settings = {"steps_per_generation": 4, "gradient_accumulation_steps": accumulation, "max_steps": 4 // accumulation}
    _, _, record = train(tmp_path, **settings)
    (rows,) = record.rounds
    policy = model().eval()
    lengths = {len(row["prompt"]) for row in rows}
    assert len(lengths) > 1, "expected prompts that are padded"
    for row in rows:
        with torch.no_grad():
            known = log_probabilities(policy, row)
        expected = known.gather(1, torch.tensor(row["tokens"])[:, None])[:, 0]
        assert torch.allclose(torch.tensor(row["old_per_token_logps"]), expected, atol=1e-4)


@pytest.mark.parametrize("loss", ["dapo", "cispo", "grpo", "dr_grpo", "bnpo"])
def test_the_gradient_is_that_of_the_tokens_that_were_chosen(tmp_path: Path, loss: str) -> None:
    host = trainer(tmp_path, loss_type=loss, epsilon_high=5.0)
    CurriculumSampler(MIX).attach(host)
    host.current_gradient_accumulation_steps = 1
    record = Record(host)
    host.model.train()
    output = host._generate_and_score_completions([{}] * 8)
    (rows,) = record.rounds
    assert any(row["interrupted"] for row in rows)
    assert not all(row["interrupted"] for row in rows)
    output["advantages"] = torch.linspace(-1.0, 2.0, 8)  # also where all of a group got the same
    host._compute_loss(host.model, output).backward()
    found = {name: value.grad.clone() for name, value in host.model.named_parameters() if value.grad is not None}
    host.model.zero_grad()
    total = torch.zeros(())
    for row, advantage in zip(rows, output["advantages"], strict=True):
        mask = torch.tensor(row["mask"], dtype=torch.float32)
        logps = log_probabilities(host.model, row).gather(1, torch.tensor(row["tokens"])[:, None])[:, 0]
        share = {"grpo": mask.sum() * 8, "dr_grpo": torch.tensor(8.0 * 32)}.get(
            loss, torch.tensor(float(sum(sum(other["mask"]) for other in rows)))
        )
        total = total - advantage * (logps * mask).sum() / share
    total.backward()
    for name, value in host.model.named_parameters():
        assert torch.allclose(found[name], value.grad, atol=1e-5), name


def test_the_log_and_the_figures_know_who_was_interrupted(tmp_path: Path) -> None:
    _, sampler, record = train(tmp_path, {"log": str(tmp_path / "log")}, max_steps=6)
    groups = read_log(tmp_path / "log").to_pylist()
    rows = [row for rows in record.rounds for row in rows]
    assert [flag for group in groups for flag in group["interrupted"]] == [row["interrupted"] for row in rows]
    assert [tokens for group in groups for tokens in group["tokens"]] == [sum(row["mask"]) for row in rows]
    metrics, told = sampler.metrics(), 0
    for name in sampler.curriculum.pool.environments:
        ours = [group for group in groups if group["environment"] == name]
        pairs = [pair for group in ours for pair in zip(group["interrupted"], group["rewards"], strict=True)]
        for figure, wanted in (("success_interrupted", True), ("success_finished", False)):
            values = [value for flag, value in pairs if bool(flag) == wanted]
            assert metrics.get(f"{name}/{figure}") == (pytest.approx(sum(values) / len(values)) if values else None)
            told += len(values)
        if pairs:
            assert metrics[f"{name}/interrupted"] == pytest.approx(sum(flag for flag, _ in pairs) / len(pairs))
    assert told == len(rows)


@pytest.mark.parametrize("refill", [False, True])
def test_a_resumed_run_interrupts_as_the_first_did(tmp_path: Path, refill: bool) -> None:
    mix = {"refill": {"rounds": 2, "batch": "variable"}} if refill else {}
    settings = {"save_strategy": "steps", "save_steps": 3, "max_steps": 7, "steps_per_generation": 2}
    whole, _, record = train(tmp_path / "a", mix, **settings)
    host = trainer(tmp_path / "b", **settings)
    CurriculumSampler({**MIX, **mix}).attach(host)
    again = Record(host)
    host.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-3"))
    assert again.rounds
    assert again.rounds == record.rounds[-len(again.rounds) :]
    assert len(again.rounds) < len(record.rounds)
    assert weights_digest(host) == weights_digest(whole)
    if refill:
        assert len(record.rounds) > 4


def test_rounds_of_one_version_have_limits_of_their_own(tmp_path: Path) -> None:
    # Two generations for each update, as where gradients are accumulated over more than one.
    _, _, record = train(tmp_path, max_steps=2, gradient_accumulation_steps=2, steps_per_generation=1)
    assert len(record.rounds) == 4
    for step in range(2):
        plan = Plan(MIX["seed"], (LEAST, MOST))
        for rows in record.rounds[2 * step : 2 * step + 2]:
            for row, limit in zip(rows, plan.limits(step, len(rows)), strict=True):
                check_row(row, limit, ANSWER)


def test_an_evaluation_is_not_interrupted(tmp_path: Path) -> None:
    seen: list[str] = []

    def keep(completions: list[str], environment: list[str], **columns: Any) -> list[float]:
        seen.extend(completions)
        return reward(completions, environment, **columns)

    host, _, record = train(tmp_path, max_steps=1, reward_funcs=keep)
    rounds, trained = len(record.rounds), len(seen)
    assert any(SENTENCE in text.replace(" ", "").replace("timeisup", " time is up") for text in seen)
    host.evaluate(eval_dataset=dataset().select(range(8)))
    assert len(record.rounds) == rounds
    assert len(seen) > trained
    assert not any("timeisup" in text.replace(" ", "") for text in seen[trained:])


@pytest.mark.parametrize("masked", [False, True])
def test_tokens_told_and_rollouts_cut_off_are_those_of_the_policy(tmp_path: Path, masked: bool) -> None:
    # Masked rollouts have no mask left that would say what was put into them.
    settings = {"max_steps": 3, "mask_truncated_completions": masked, "per_device_train_batch_size": 16}
    host = trainer(tmp_path, **settings)
    sampler = CurriculumSampler(MIX).attach(host)
    told: list[Any] = []
    tell = sampler.curriculum.tell
    sampler.curriculum.tell = lambda outcomes: told.extend(outcomes) or tell(outcomes)
    rounds: list[list[list[int]]] = []
    capture = host._curricula.capture
    host._curricula.capture = lambda inputs, rewards, ids: rounds.append(ids) or capture(inputs, rewards, ids)
    host.train()
    tokens = [count for outcome in told for count in outcome.tokens]
    cut_off = [flag for outcome in told for flag in outcome.truncated]
    interrupted = [flag for outcome in told for flag in outcome.interrupted]
    rollouts = [row for rows in rounds for row in rows]
    assert tokens == [len(row) - len(FORCED) * flag for row, flag in zip(rollouts, interrupted, strict=True)]
    for row, flag, cut in zip(rollouts, interrupted, cut_off, strict=True):
        start = next((at for at in range(len(row)) if row[at : at + len(FORCED)] == FORCED), 0) + len(FORCED)
        assert not flag or cut == (row[-1] not in ENDS and len(row) - start == ANSWER)
    assert any(interrupted)
    assert any(cut_off)
    assert not all(cut_off)


def test_an_end_that_no_policy_chose_is_put_in(tmp_path: Path) -> None:
    host = trainer(tmp_path, max_steps=1)
    CurriculumSampler(MIX).attach(host)
    silent: list[bool] = []
    begun = host._curricula.interruption._begun

    def nothing(prompt: Any, tokens: list[int], logps: Any, *limits: Any) -> Any:
        silent.append(len(silent) % 4 == 1)
        return begun(prompt, *(([], None) if silent[-1] else (tokens, logps)), *limits)

    host._curricula.interruption._begun = nothing
    record, told = Record(host), []
    tell = host._curricula.curriculum.tell
    host._curricula.curriculum.tell = lambda outcomes: told.extend(outcomes) or tell(outcomes)
    host.train()
    (rows,) = record.rounds
    assert sum(silent) == 2
    for row, gave_nothing in zip(rows, silent, strict=True):
        if gave_nothing:
            assert (row["tokens"], row["mask"], row["interrupted"]) == ([host.eos_token_ids[0]], [0], False)
    counted = [pair for one in told for pair in zip(one.tokens.tolist(), one.interrupted.tolist(), strict=True)]
    assert counted == [(sum(row["mask"]), row["interrupted"]) for row in rows]
    assert [count == 0 for count, _ in counted] == silent
    assert any(found for _, found in counted)
    assert int(record.outputs[0]["num_items_in_batch"]) == sum(sum(row["mask"]) for row in rows)


def test_what_was_masked_as_truncated_stays_masked(tmp_path: Path) -> None:
    _, sampler, record = train(tmp_path, max_steps=3, mask_truncated_completions=True, per_device_train_batch_size=16)
    for output in record.outputs:
        items = (output["completion_mask"] * output["tool_mask"]).sum()
        assert output["num_items_in_batch"] == items
    metrics = sampler.metrics()
    assert any(name.endswith("/truncated") and value > 0 for name, value in metrics.items())
    assert all(torch.isfinite(parameter).all() for parameter in sampler.trainer.model.parameters())


def test_plain_text_is_interrupted_until_it_ends(tmp_path: Path) -> None:
    section = {"at": [3, 3], "answer": 4, "closing": None, "sentence": "=now:"}
    _, sampler, record = train(tmp_path, {"interruption": section}, per_device_train_batch_size=16, max_steps=10)
    forced = TOKENIZER("=now:")["input_ids"]
    ways = set()
    for row in (row for rows in record.rounds for row in rows):
        still = len(row["tokens"]) > 3 and row["tokens"][2] not in ENDS
        assert row["interrupted"] == still == (row["tokens"][3 : 3 + len(forced)] == forced)
        ways.add(still)
    assert ways == {True, False}
    assert any(name.endswith("/success_interrupted") for name in sampler.metrics())


def chatty() -> PreTrainedTokenizerFast:
    """Knows the tags of a thinking template as single tokens."""
    made = tokenizer(LETTERS, further=["<think>", "</think>"])
    made.chat_template = (
        "{% for m in messages %}{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}={{ '<think>' }}{% endif %}"
    )
    made.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    return made


def test_a_chat_template_that_opens_the_thinking(tmp_path: Path) -> None:
    host = trainer(
        tmp_path,
        train_dataset=Dataset.from_list(
            [{"prompt": [{"role": "user", "content": "7" * (1 + n % 5)}], "environment": "a"} for n in range(32)]
        ),
        reward_funcs=lambda completions, **_: [float("</think>" in text[0]["content"]) for text in completions],
        model=model(further=2),
        processing_class=chatty(),
        max_steps=3,
        per_device_train_batch_size=16,
    )
    section = {"at": [4, 6], "answer": 3, "sentence": "time is up</think>"}
    CurriculumSampler({"interruption": section, "seed": 1}).attach(host)
    record = Record(host)
    host.train()
    own = host.processing_class
    forced = own(section["sentence"])["input_ids"]
    closing = own.convert_tokens_to_ids("</think>")
    assert forced[-1] == closing
    found = {True: 0, False: 0}
    for version, rows in enumerate(record.rounds):
        for row, limit in zip(rows, Plan(1, (4, 6)).limits(version, len(rows)), strict=True):
            assert row["prompt"][-1] == own.convert_tokens_to_ids("<think>")
            thought = row["tokens"][:limit]
            still = len(thought) == limit and closing not in thought and thought[-1] not in ENDS
            assert row["interrupted"] == still
            found[still] += 1
            if still:
                assert row["tokens"][limit : limit + len(forced)] == forced
    assert found[True] > 4


def test_a_template_without_thinking_leaves_only_the_answer(tmp_path: Path) -> None:
    own = chatty()
    own.chat_template = own.chat_template.replace("'<think>'", "'<think></think>'")
    host = trainer(
        tmp_path,
        train_dataset=Dataset.from_list(
            [{"prompt": [{"role": "user", "content": "7"}], "environment": "a"} for _ in range(32)]
        ),
        reward_funcs=lambda completions, **_: [float(len(text[0]["content"]) % 2) for text in completions],
        model=model(further=2),
        processing_class=own,
        max_steps=1,
    )
    CurriculumSampler({"interruption": {"at": [4, 6], "answer": 5, "sentence": "now</think>"}}).attach(host)
    record = Record(host)
    host.train()
    assert not any(row["interrupted"] for row in record.rounds[0])
    assert max(len(row["tokens"]) for row in record.rounds[0]) == 5
