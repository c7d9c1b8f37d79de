"""The outcome log under TRL's trainer: each group of each round is a row, and a resume marks what it redoes."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from host import Trace, dataset, trainer

from curricula import GroupOutcome, read_log
from curricula.config import load_mix
from curricula_trl import CurriculumSampler


def run(folder: Path, resume: Path | None = None, **settings: Any) -> list[dict[str, Any]]:
    (folder / "mix.yaml").write_text("log: outcomes-of-it", encoding="utf-8")
    host = trainer(folder, **{"max_steps": 6, "save_strategy": "steps", "save_steps": 2, **settings})
    CurriculumSampler.from_yaml(folder / "mix.yaml").attach(host)
    trace = Trace(host)
    host.train(resume_from_checkpoint=None if resume is None else str(resume))
    return trace.rounds


def groups(rounds: list[dict[str, Any]]) -> list[tuple[str, list[float]]]:
    return [
        (prompts[start], rewards[start : start + 4])
        for made in rounds
        for prompts, rewards in [(made["prompts"], made["rewards"])]
        for start in range(0, len(prompts), 4)
    ]


def logged(folder: Path, **choice: Any) -> list[dict[str, Any]]:
    rows = read_log(folder / "outcomes-of-it", **choice).to_pylist()
    return [row for row in rows if row["status"] == "ok"]


@pytest.mark.parametrize("settings", [{}, {"steps_per_generation": 3}], ids=str)
def test_a_run_and_its_resume_are_in_the_log_once(tmp_path: Path, settings: dict[str, Any]) -> None:
    rounds = groups(run(tmp_path, **settings))
    rows = logged(tmp_path)
    assert [row["rewards"] for row in rows] == [rewards for _, rewards in rounds]
    for row, (prompt, _) in zip(rows, rounds, strict=True):
        assert prompt.startswith(f"{row['environment']}:")
        assert len(row["tokens"]) == row["group_size"] == 4
    assert not list((tmp_path / "outcomes-of-it" / "journals").iterdir())
    shutil.rmtree(tmp_path / "checkpoint-6")
    again = groups(run(tmp_path, tmp_path / "checkpoint-4", **settings))
    # What was redone is the same, so that the log reads as that of the unbroken run.
    assert again == rounds[len(rounds) - len(again) :]
    resumed = logged(tmp_path)
    assert [row["run"] for row in resumed] == [1] * (len(rounds) - len(again)) + [2] * len(again)
    for row, before in zip(resumed, rows, strict=True):
        apart = {"run": 0, "time": 0, "asked_time": 0, "device_seconds": 0}
        assert {**before, **apart} == {**row, **apart}
    assert sum(row["superseded"] for row in logged(tmp_path, superseded=True)) == len(again)


def test_a_run_that_fails_leaves_a_log_that_can_be_read(tmp_path: Path) -> None:
    def reward(completions: list[str], **_: Any) -> list[float]:
        if host.state.global_step >= 2:
            raise RuntimeError("planted")
        return [float(len(text) % 2) for text in completions]

    host = trainer(tmp_path, reward_funcs=reward)
    sampler = CurriculumSampler({"log": str(tmp_path / "log")}).attach(host)
    with pytest.raises(RuntimeError, match="planted"):
        host.train()
    rows = read_log(tmp_path / "log").to_pylist()
    assert [row["status"] for row in rows] == ["ok"] * 4 + ["cancelled"] * 2
    sampler.detach()
    assert read_log(tmp_path / "log").to_pylist() == rows
    sampler.attach(trainer(tmp_path)).trainer.train()
    assert {row["run"] for row in read_log(tmp_path / "log").to_pylist()} == {1, 2}


def test_the_log_starts_at_the_folder_of_the_mix(tmp_path: Path) -> None:
    (tmp_path / "mix.yaml").write_text("log: logs/one", encoding="utf-8")
    assert load_mix(tmp_path / "mix.yaml").log_folder == tmp_path / "logs" / "one"


def test_a_run_starts_warm_from_the_log_of_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("INFO", logger="curricula")
    run(tmp_path)
    known = {row["key"] for row in logged(tmp_path)}
    sampler = CurriculumSampler(warm_start=tmp_path / "outcomes-of-it").attach(trainer(tmp_path / "second"))
    said = f"outcomes-of-it: 12 outcomes of {len(known)} prompts were taken over, 0 of prompts that are not here"
    assert said in caplog.text
    assert said in capsys.readouterr().out
    assert sampler.metrics()["coverage"] == len(known) / 80
    assert sampler.metrics()["told"] == 0
    sampler.trainer.train()
    assert sampler.metrics()["told"] == 8


def test_a_sampler_by_hand_logs_too(tmp_path: Path) -> None:
    sampler = CurriculumSampler({"log": str(tmp_path / "log")}, dataset=dataset(), batch_size=4, group_size=4)
    epoch = iter(sampler)
    drawn = [next(epoch) for _ in range(4)]
    sampler.tell([GroupOutcome(None, [0, 1, 1, 0], index=index) for index in drawn])
    rows = read_log(tmp_path / "log").to_pylist()
    assert [(row["index"], row["verdict"]) for row in rows] == [(index, "informative") for index in drawn]
    assert all(row["propensity"] > 0 for row in rows)
