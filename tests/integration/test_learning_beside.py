"""A step waits neither for the choice of prompts nor for the learning, and what they raise reaches every rank."""

import threading
from pathlib import Path
from typing import Any

import pytest
from host import dataset, trainer
from launched import launch

from curricula import CurriculumConfig
from curricula.learner import Learner
from curricula_trl import CurriculumSampler
from curricula_trl.rows import Rows


def test_learning_is_beside_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    take_in = Learner._take_in

    def watched(self: Learner, *arguments: Any) -> None:
        threads.append(threading.current_thread().name)
        take_in(self, *arguments)

    monkeypatch.setattr(Learner, "_take_in", watched)
    host = trainer(tmp_path, max_steps=5)
    sampler = CurriculumSampler().attach(host)
    host.train()
    # The last round has no next one to be asked for.
    assert len(threads) == 5
    assert all(name.startswith("curricula") for name in threads[:-1])
    assert sampler.curriculum.metrics()["told"] == 10


BROKEN = """
import numpy as np

class Broken:
    def __init__(self, arms): self.arms = arms
    def shares(self, costs, rng): return np.full(self.arms, 1 / self.arms)
    def update(self, codes, rewards, shares): raise KeyError("planted")
    def state_dict(self): return {}
    def load(self, state): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_learning_raises_ends_every_rank(tmp_path: Path, ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    config = {"curriculum": {"bandit": {"type": "broken:Broken"}}}
    code, text = launch(tmp_path / "out.json", ranks, output=str(tmp_path / "run"), config=config)
    assert code != 0
    assert "broken:Broken.update raised KeyError" in text
    if ranks > 1:
        assert "rank 0 failed, so this rank stops too" in text


def test_rows_are_read_beside_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    read = Rows._read

    def watched(self: Rows, indices: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read(self, indices)

    monkeypatch.setattr(Rows, "_read", watched)
    host = trainer(tmp_path, max_steps=5)
    CurriculumSampler().attach(host)
    host.train()
    # None was drawn ahead of the first round.
    assert len(threads) == 5
    assert all(name.startswith("curricula") for name in threads[1:])


def test_what_is_wrong_with_a_row_is_raised_where_it_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Rows, indices: Any) -> Any:
        raise LookupError(threading.current_thread().name)

    rows = Rows(dataset(), CurriculumConfig())
    rows.read_ahead([3, 5])
    with monkeypatch.context() as patched:
        patched.setattr(Rows, "_read", broken)
        assert [row["prompt"] for row in rows.fetch([5, 3, 5], [1, 2, 1], ["prompt"])] == [
            "easy:5=",
            "easy:3=",
            "easy:3=",
            "easy:5=",
        ]
        rows.read_ahead([1])
        with pytest.raises(LookupError):
            rows.fetch([1], [1], None)
    rows.read_ahead([1])
    assert rows.fetch([2], [1], ["prompt"]) == [{"prompt": "easy:2="}]
    assert rows.fetch([1], [1], ["prompt"]) == [{"prompt": "easy:1="}]
