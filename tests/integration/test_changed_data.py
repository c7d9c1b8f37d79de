"""A run that is resumed on a data set that changed: what is known goes with the prompts that are still there."""

from pathlib import Path

import pytest
from datasets import concatenate_datasets
from host import dataset, trainer

from curricula import GroupOutcome
from curricula_trl import CurriculumSampler

KEYED = {"key": "prompt"}


def test_a_trainer_goes_on_with_prompts_that_came_and_went(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"save_strategy": "steps", "save_steps": 1, "steps_per_generation": 1}
    host = trainer(tmp_path, max_steps=6, **settings)
    sampler = CurriculumSampler(KEYED).attach(host)
    host.train()
    before = sampler.metrics()
    changed = concatenate_datasets([dataset({"news": 9}), dataset().shuffle(seed=1).select(range(70))])
    host = trainer(tmp_path, max_steps=8, train_dataset=changed, **settings)
    sampler = CurriculumSampler(KEYED).attach(host)
    host.train(resume_from_checkpoint=str(tmp_path / "checkpoint-5"))
    assert "the data set changed since the state was saved: it had 80 prompts and has 79" in caplog.text
    assert "environments that are new: news" in caplog.text
    assert host.state.global_step == 8
    after = sampler.metrics()
    assert after["told"] > before["told"]
    assert after["in_flight"] == 0


def test_a_sampler_by_hand_goes_on_where_its_prompts_are_now() -> None:
    old = dataset()
    sampler = CurriculumSampler(KEYED, dataset=old, batch_size=4)
    indices = [index for _, index in zip(range(10), sampler, strict=False)]
    sampler.tell([GroupOutcome(None, [0, 1], index=index) for index in indices[:6]])
    new = old.shuffle(seed=2)
    resumed = CurriculumSampler(KEYED, dataset=new, batch_size=4)
    resumed.load_state_dict(sampler.state_dict())
    rows = {row["prompt"]: number for number, row in enumerate(new)}
    open_rows = {rows[old[index]["prompt"]] for index in indices[6:]}
    waiting = [index for index, _ in resumed.state_dict()["waiting"]]
    assert len(waiting) == 2
    assert {index for index, _ in resumed.state_dict()["open"]} == open_rows | set(waiting)
    resumed.tell([GroupOutcome(None, [0, 1], index=index) for index in sorted(open_rows)])
    assert resumed.metrics()["told"] == 10
    assert len(list(resumed)) == len(new) - 10
