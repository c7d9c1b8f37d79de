"""A step waits neither for the choice of prompts nor for the learning, and what they raise reaches every rank."""

import threading
from pathlib import Path
from typing import Any

import pytest
from host import trainer
from launched import launch

from curricula.learner import Learner
from curricula_trl import CurriculumSampler


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
