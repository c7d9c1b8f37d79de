"""The sampler on its own: a host without TRL's seam iterates it, tells by hand, and stops and resumes."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from host import ENVIRONMENTS, dataset, trainer
from torch.utils.data import DataLoader, Sampler

from curricula import CurriculaError, GroupOutcome
from curricula_trl import CurriculumSampler

SIZE = sum(ENVIRONMENTS.values())


def outcome(index: int, **columns: Any) -> GroupOutcome:
    share = [1.0, 0.5, 0.1, 0.0][index % 4]
    rewards = (np.arange(8) < round(8 * share)).astype(float)
    return GroupOutcome(None, rewards, tokens=[5] * 8, index=index, **columns)


def test_is_a_sampler_for_a_loader() -> None:
    sampler = CurriculumSampler(dataset=dataset(), batch_size=4)
    assert isinstance(sampler, Sampler)
    loader = DataLoader(dataset(), sampler=sampler, batch_size=4, collate_fn=list)
    for batch in islice(loader, 3):
        assert len({row["prompt"] for row in batch}) == 4
    assert sampler.metrics()["draws"] >= 12


def test_epoch_is_one_draw_per_prompt() -> None:
    sampler = CurriculumSampler(dataset=dataset(), batch_size=7)
    for _ in range(2):
        drawn = 0
        for index in sampler:
            sampler.tell([outcome(index)])
            drawn += 1
        assert drawn == len(sampler) == SIZE
    assert sampler.metrics()["told"] == 2 * SIZE
    assert sampler.metrics()["in_flight"] == 0


def test_repeats_each_index() -> None:
    sampler = CurriculumSampler(dataset=dataset(), batch_size=2, repeat=3)
    indices = list(sampler)
    assert len(indices) == len(sampler) == 3 * SIZE
    assert all(len(set(indices[start : start + 3])) == 1 for start in range(0, len(indices), 3))


def test_lag_is_the_loaders_and_drawn_prompts_are_not_drawn_again() -> None:
    sampler = CurriculumSampler(dataset=dataset(), batch_size=4)
    iterator = iter(sampler)
    ahead = [next(iterator) for _ in range(40)]
    assert len(set(ahead)) == 40
    assert sampler.metrics()["in_flight"] == 40
    sampler.tell([outcome(index) for index in reversed(ahead)])
    assert sampler.metrics()["in_flight"] == 0


@pytest.mark.parametrize("stop", [1, 6, 17])
def test_resume_is_exact(stop: int) -> None:
    def advance(sampler: CurriculumSampler, indices: Iterator[int], steps: int) -> list[int]:
        seen: list[int] = []
        for index in islice(indices, steps):
            seen.append(index)
            if len(seen) % 3 == 0:
                sampler.tell([outcome(i) for i in seen[-3:]])
        return seen

    whole = CurriculumSampler(dataset=dataset(), batch_size=4)
    indices = iter(whole)
    assert len(advance(whole, indices, stop)) == stop
    resumed = CurriculumSampler(dataset=dataset(), batch_size=4)
    resumed.load_state_dict(whole.state_dict())
    rest = advance(whole, indices, SIZE)
    assert advance(resumed, iter(resumed), SIZE) == rest
    assert len(rest) == SIZE - stop
    assert resumed.metrics() == whole.metrics()


def test_an_epoch_left_early_leaves_nothing_behind() -> None:
    sampler = CurriculumSampler(dataset=dataset(), batch_size=8)
    first = next(iter(sampler))
    assert len(list(sampler)) == SIZE
    sampler.tell([outcome(first)])
    assert sampler.metrics()["in_flight"] <= SIZE


def test_state_of_another_kind_is_refused() -> None:
    sampler = CurriculumSampler(dataset=dataset())
    for state in ({}, {"curriculum": {}, "yielded": 0, "waiting": [], "open": [1]}, {"curriculum": {}, "yielded": "x"}):
        with pytest.raises(CurriculaError):
            sampler.load_state_dict(state)
    with pytest.raises(CurriculaError):
        CurriculumSampler(dataset=dataset({"easy": 3})).load_state_dict(sampler.state_dict())


def test_without_data_it_says_what_to_do() -> None:
    with pytest.raises(CurriculaError, match=r"attach\(trainer\).*dataset="):
        len(CurriculumSampler())
    with pytest.raises(CurriculaError, match=r"group_size.*at least 2; got 1"):
        CurriculumSampler(dataset=dataset(), group_size=1)


def test_rows_of_any_map_style_data_set() -> None:
    class Own:
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> dict[str, Any]:
            return {"prompt": str(index), "environment": "ab"[index % 2], "array": np.arange(2), "tag": {"x": (1, 2)}}

    sampler = CurriculumSampler(dataset=Own(), batch_size=3)
    assert len(list(sampler)) == 6
    assert set(sampler.curriculum.pool.environments) == {"a", "b"}


def test_levels_open_a_window() -> None:
    rows = [{"prompt": str(n), "environment": "a", "level": n % 5} for n in range(50)]
    mix = {"environments": {"a": {"levels": [1, 2]}}}
    sampler = CurriculumSampler(mix, dataset=Dataset.from_list(rows), batch_size=5)
    drawn = [index for index, _ in zip(sampler, range(20), strict=False)]
    assert {index % 5 for index in drawn} == {1, 2}


def test_what_is_never_told_expires_and_leaks_nothing() -> None:
    sampler = CurriculumSampler(
        {"curriculum": {"expiry": 3}}, dataset=dataset({"easy": 20}), batch_size=2, group_size=2
    )
    for _ in range(30):
        assert len(list(sampler)) == 20
    assert len(sampler.state_dict()["open"]) <= sampler.metrics()["in_flight"] + 2
    sampler.tell([outcome(index) for index in range(20)])


def test_a_prompt_that_was_partly_handed_out_stays_in_flight() -> None:
    sampler = CurriculumSampler(dataset=dataset({"easy": 9}), batch_size=3, repeat=2)
    iterator = iter(sampler)
    first = [next(iterator) for _ in range(3)]
    next(iter(sampler))
    assert sampler.curriculum is not None
    rows = list(sampler.curriculum.in_flight().values())
    assert set(first) <= set(rows)
    assert len(rows) == 2 + 3


def test_a_state_saved_at_the_end_of_an_epoch_begins_the_next() -> None:
    sampler = CurriculumSampler(dataset=dataset(), batch_size=4)
    list(sampler)
    resumed = CurriculumSampler(dataset=dataset(), batch_size=4)
    resumed.load_state_dict(sampler.state_dict())
    assert len(list(resumed)) == SIZE


def test_attached_it_is_the_trainers(tmp_path: Path) -> None:
    sampler = CurriculumSampler().attach(trainer(tmp_path))
    assert len(sampler) == SIZE
    for use in (lambda: next(iter(sampler)), sampler.state_dict, lambda: sampler.load_state_dict({})):
        with pytest.raises(CurriculaError, match="attached, so the trainer draws"):
            use()


def test_what_only_the_launcher_reads_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    CurriculumSampler({"model": "no-such-model"}).attach(trainer(tmp_path))
    assert "only `curricula train` reads model of a mix" in caplog.text
