from pathlib import Path

import numpy as np
import pytest

from curricula import CurriculaValueError, Curriculum, GroupOutcome, PromptPool, open_log, read_log, warm_start

KEYS = [f"k{row}" for row in range(40)]


def curriculum(keys: list[str] = KEYS) -> Curriculum:
    return Curriculum(PromptPool(["sums"] * len(keys), keys=keys), seed=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path / "log")
    for _ in range(6):
        draws = made.ask(8, group_size=4)
        solved = [float(int(draw.key[1:]) < 20) for draw in draws]
        made.tell([GroupOutcome(d.ticket, [s] * 4, tokens=rng.integers(1, 9, 4)) for d, s in zip(draws, solved)])  # noqa: B905
    lost, failed = made.ask(2, group_size=4)
    made.cancel([lost.ticket])
    made.tell([GroupOutcome(failed.ticket, [0] * 4, status="error"), GroupOutcome(lost.ticket, [0] * 4)])
    log.close()
    return tmp_path / "log"


def test_it_is_what_telling_by_index_in_order_gives(folder: Path) -> None:
    warm, told = curriculum(), curriculum()
    found = warm_start(warm, folder)
    rows = [row for row in read_log(folder).to_pylist() if row["status"] == "ok" and row["verdict"] != "cancelled"]
    assert found == (48, len({row["key"] for row in rows}), 0)
    for moment in sorted({row["told_at"] for row in rows}):
        told.tell(
            [
                GroupOutcome(None, row["rewards"], tokens=row["tokens"], index=row["index"])
                for row in rows
                if row["told_at"] == moment
            ]
        )
    every = np.arange(40)
    assert warm.beliefs(every).mean.tolist() == told.beliefs(every).mean.tolist()
    assert warm.metrics()["told"] == 0
    assert warm.metrics()["coverage"] == found.prompts / 40


def test_prompts_are_found_by_key_wherever_they_stand(folder: Path) -> None:
    moved = curriculum([*reversed(KEYS[10:]), "new"])
    found = warm_start(moved, read_log(folder))
    assert found.outcomes + found.unmatched == 48
    assert found.unmatched > 0
    rows = {row["key"] for row in read_log(folder).to_pylist() if row["status"] == "ok"}
    means = moved.beliefs(np.arange(31)).mean
    for key in rows & set(KEYS[10:]):
        assert (means[KEYS[::-1].index(key)] > 0.5) == (int(key[1:]) < 20)


def test_its_own_log_does_not_get_them_again(folder: Path, tmp_path: Path) -> None:
    warm = curriculum()
    log = open_log(warm, tmp_path / "own")
    warm_start(warm, folder)
    warm.ask(1, group_size=4)
    log.close()
    assert read_log(tmp_path / "own").num_rows == 1


def test_a_log_of_another_data_set_is_refused(folder: Path) -> None:
    with pytest.raises(CurriculaValueError, match="expected outcomes of prompts of this pool; got 48 outcomes, none"):
        warm_start(curriculum(["other"]), folder)
