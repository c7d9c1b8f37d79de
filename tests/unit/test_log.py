from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from curricula import CurriculaValueError, Curriculum, GroupOutcome, PromptPool, warm_start
from curricula.log import parts, read_log, writer
from curricula.log.frames import START, encode, frames
from curricula.log.writer import open_log
from curricula.stateful import Reader


def curriculum(**config: Any) -> Curriculum:
    names = ["sums"] * 40 + ["maths"] * 40
    pool = PromptPool(names, keys=[f"k{row}" for row in range(80)], levels=[row % 4 for row in range(80)])
    return Curriculum(pool, config, seed=3)


def step(made: Curriculum, rng: np.random.Generator, n: int = 8, **more: Any) -> list[Any]:
    draws = made.ask(n, group_size=4, policy_version=more.pop("version", 0))
    told = [GroupOutcome(draw.ticket, rng.integers(0, 2, 4) * 1.0, tokens=rng.integers(1, 9, 4)) for draw in draws]
    made.tell(told)
    return list(zip(draws, told, strict=True))


def test_every_draw_and_outcome_is_a_row(tmp_path: Path) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    believed = made.beliefs(np.arange(80)).mean
    known = step(made, rng, version=5)
    shares = made.shares()
    shaped = made.ask(1, group_size=3)[0]
    verdict, _ = made.tell(
        [
            GroupOutcome(
                shaped.ticket,
                [0.5, np.nan, np.inf],
                successes=[0, 1, 1],
                interrupted=[0, 0, 1],
                truncated=[0, 1, 0],
                trainable=[1, 1, 0],
                components=[[1, 2], [3, 4], [5, 6]],
                policy_version=6,
            ),
            GroupOutcome(None, np.eye(3)[:, 1], components=np.ones((3, 3)), index=2),
        ]
    )
    log.close()
    rows = read_log(tmp_path).to_pylist()
    assert len(rows) == 10
    for row, (draw, outcome) in zip(rows, known, strict=False):
        assert (row["ticket"], row["index"], row["key"]) == (draw.ticket, draw.index, draw.key)
        assert (row["environment"], row["propensity"], row["reason"]) == (
            draw.environment,
            draw.propensity,
            draw.reason,
        )
        assert (row["ask"], row["asked_at"], row["told_at"], row["policy_version"]) == (1, 1, 2, 5)
        assert (row["run"], row["seed"], row["group_size"], row["status"]) == (1, 3, 4, "ok")
        assert row["level"] == draw.index % 4
        assert row["rewards"] == list(outcome.rewards)
        assert row["tokens"] == list(outcome.tokens)
        assert row["successes"] is None
        assert row["share"] == shares[draw.environment]
        assert (row["belief_mean"], row["time"] >= row["asked_time"]) == (believed[draw.index], True)
    last, other = rows[-2:]
    assert (last["truncated"], last["trainable"]) == ([0, 1, 0], [1, 1, 0])
    assert (last["components"], other["components"]) == ([[1, 2], [3, 4], [5, 6]], [[1, 1, 1]] * 3)
    assert (other["rewards"], other["key"], other["successes"], other["truncated"]) == ([0, 1, 0], "k2", None, None)
    assert (last["keep"], last["verdict"], last["policy_version"]) == (verdict.keep, verdict.reason, 6)
    assert last["rewards"][0] == 0.5
    assert np.isnan(last["rewards"][1])
    assert last["rewards"][2] == np.inf
    assert (last["successes"], last["interrupted"], last["tokens"]) == ([0, 1, 1], [0, 0, 1], None)


def test_draws_that_were_never_told_say_so(tmp_path: Path) -> None:
    made, rng = curriculum(curriculum={"expiry": 2}), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    late, gone = made.ask(2, group_size=4)
    made.cancel([gone.ticket])
    made.tell([GroupOutcome(gone.ticket, [1, 0, 0, 0])])
    for _ in range(3):
        step(made, rng, 1)
    (waiting,) = made.ask(1, group_size=4)
    for row in (read_log(tmp_path).to_pylist(), log.close() or read_log(tmp_path).to_pylist()):
        found = {(entry["ticket"], entry["status"]): entry for entry in row}
        assert found[gone.ticket, "cancelled"]["rewards"] is None
        assert found[gone.ticket, "ok"]["verdict"] == "cancelled"
        assert found[late.ticket, "expired"]["key"] == late.key
        assert found[waiting.ticket, "open"]["propensity"] == waiting.propensity
        assert len(row) == 7


def test_outcomes_by_index_and_of_every_status(tmp_path: Path) -> None:
    made = curriculum()
    log = open_log(made, tmp_path)
    stale, error = made.ask(2, group_size=2)
    made.tell([GroupOutcome(None, [1.0, 0.0], index=7), GroupOutcome(stale.ticket, [1.0, 0.0], status="stale")])
    made.tell([GroupOutcome(error.ticket, [np.nan, np.nan], status="error")])
    log.close()
    by_status = {row["status"]: row for row in read_log(tmp_path).to_pylist()}
    assert by_status["ok"]["key"] == "k7"
    assert by_status["ok"]["ticket"] is by_status["ok"]["propensity"] is None
    assert (by_status["stale"]["rewards"], by_status["stale"]["keep"]) == ([1.0, 0.0], False)
    assert by_status["error"]["verdict"] == "error"


def test_it_can_be_read_at_any_time_and_parts_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_JOURNAL_ROWS", 16)
    monkeypatch.setattr(writer, "_FLUSH_ROWS", 8)
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    assert read_log(tmp_path).num_rows == 0
    for number in range(1, 40):
        step(made, rng)
        if number % 7 == 0:
            log.flush()
        rows = read_log(tmp_path)
        assert rows.column("ticket").to_pylist() == list(range(8 * number))
        for path in (tmp_path / "outcomes").glob("*.parquet"):
            assert pq.read_table(path).num_rows <= 16 * 8 + 8
    log.close()
    assert read_log(tmp_path).num_rows == 8 * 39
    assert 5 <= len(list((tmp_path / "outcomes").iterdir())) <= 25
    assert pq.read_table(tmp_path / "outcomes").num_rows == 8 * 39
    assert [path.name for path in (tmp_path / "runs").iterdir() if path.suffix == ".lock"] == []
    assert not list((tmp_path / "journals").iterdir())


def test_a_log_changes_nothing_that_is_chosen(tmp_path: Path) -> None:
    plain, logged = curriculum(), curriculum()
    open_log(logged, tmp_path)
    for seed in range(5):
        first = [draw for draw, _ in step(plain, np.random.default_rng(seed))]
        assert first == [draw for draw, _ in step(logged, np.random.default_rng(seed))]


def test_nothing_is_written_before_the_first_draw(tmp_path: Path) -> None:
    open_log(curriculum(), tmp_path / "log").close()
    assert not [path for path in (tmp_path / "log").rglob("*") if path.is_file()]


def test_resuming_supersedes_what_came_after_the_saved_state(tmp_path: Path) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    open_log(made, tmp_path)
    step(made, rng)
    (waiting,) = made.ask(1, group_size=4)
    state = made.state_dict()
    step(made, rng)
    made.tell([GroupOutcome(waiting.ticket, [1, 1, 0, 0])])
    # The process ends here without closing its log; another goes on from the saved state.
    resumed = curriculum()
    log = open_log(resumed, tmp_path)
    resumed.load_state_dict(state)
    again = step(resumed, np.random.default_rng(9), 3)
    resumed.tell([GroupOutcome(waiting.ticket, [0, 0, 0, 1])])
    log.close()
    rows = read_log(tmp_path).to_pylist()
    assert [row["run"] for row in rows] == [1] * 8 + [2] * 4
    assert [row["ticket"] for row in rows[8:]] == [*[draw.ticket for draw, _ in again], waiting.ticket]
    assert (rows[-1]["rewards"], rows[-1]["propensity"]) == ([0, 0, 0, 1], waiting.propensity)
    everything = read_log(tmp_path, superseded=True).to_pylist()
    assert len(everything) == 8 + 9 + 4
    assert sum(row["superseded"] for row in everything) == 9


def test_resuming_twice_and_from_further_back(tmp_path: Path) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    step(made, rng)
    first = made.state_dict()
    step(made, rng)
    second = made.state_dict()
    log.close()
    step(made, rng)  # goes on after a close, as another run
    assert [row["run"] for row in read_log(tmp_path).to_pylist()] == [1] * 16 + [2] * 8
    made.load_state_dict(second)
    step(made, rng)
    assert [row["run"] for row in read_log(tmp_path).to_pylist()] == [1] * 16 + [3] * 8
    made.load_state_dict(first)
    step(made, rng)
    log.close()
    assert [row["run"] for row in read_log(tmp_path).to_pylist()] == [1] * 8 + [4] * 8
    fresh = curriculum()
    log = open_log(fresh, tmp_path)
    step(fresh, rng)
    log.close()
    assert [row["run"] for row in read_log(tmp_path).to_pylist()] == [1] * 8 + [4] * 8 + [5] * 8


def test_a_state_of_another_log_begins_a_new_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    open_log(made, tmp_path / "a")
    (waiting,) = made.ask(1, group_size=4)
    state = made.state_dict()
    other = curriculum()
    log = open_log(other, tmp_path / "b")
    other.load_state_dict(state)
    assert "does not hold the log of the run that is resumed" in caplog.text
    step(other, rng, 1)
    other.tell([GroupOutcome(waiting.ticket, [0, 1, 1, 1])])
    log.close()
    assert [row["key"] for row in read_log(tmp_path / "b").to_pylist()][1] == waiting.key


def test_a_disk_that_fails_is_said_once_and_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    step(made, rng)

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("curricula.log.frames.os.write", fail)
    step(made, rng)
    step(made, rng)
    monkeypatch.undo()
    assert caplog.text.count("the log cannot be written and ends here") == 1
    log.close()
    assert read_log(tmp_path).num_rows == 8


def test_parts_that_cannot_be_written_stay_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parts, "write_part", fail)
    monkeypatch.setattr(writer, "_FLUSH_ROWS", 1)
    step(made, rng)
    log.flush()
    assert "they are kept in journals/" in caplog.text
    monkeypatch.undo()
    step(made, rng)
    assert read_log(tmp_path).num_rows == 16
    log.close()
    assert not list((tmp_path / "journals").iterdir())
    assert read_log(tmp_path).num_rows == 16


def test_a_crash_between_part_and_journal_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    step(made, rng)
    made.ask(1, group_size=4)
    monkeypatch.setattr(writer, "_FLUSH_ROWS", 1)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    log.flush()
    assert len(list((tmp_path / "journals").iterdir())) == 1
    monkeypatch.undo()
    assert read_log(tmp_path).num_rows == 9
    step(made, rng)
    log.close()
    assert read_log(tmp_path).num_rows == 17


@pytest.mark.parametrize("keep", range(0, 400, 7))
def test_a_journal_cut_anywhere_is_read_up_to_there(keep: int) -> None:
    whole = [encode(1, moment, {"ask": moment}, {"row": np.arange(moment)}) for moment in range(1, 5)]
    content = (START + b"".join(whole))[: len(START) + keep]
    lengths = np.cumsum([len(frame) for frame in whole])
    assert [frame.moment for frame in frames(content)] == list(range(1, 1 + int((lengths <= keep).sum())))


@pytest.mark.parametrize("damaged", range(5))
@pytest.mark.parametrize("part", ["kind", "moment", "length", "huge", "payload"])
def test_frames_behind_a_damaged_one_are_read(damaged: int, part: str, caplog: pytest.LogCaptureFixture) -> None:
    whole = [encode(1, moment, {"ask": moment}, {"row": np.arange(90)}) for moment in range(4, 9)]
    content = bytearray(START + b"".join(whole))
    start = len(START) + sum(map(len, whole[:damaged]))
    # The head is 1 byte of kind, 8 of moment, 4 of length, 4 of checksum; a wrong moment alone is not found out.
    content[start + {"kind": 0, "moment": 1, "length": 9, "huge": 12, "payload": 60}[part]] ^= 8
    if part == "moment":
        content[start + 60] ^= 8
    left = [moment for place, moment in enumerate(range(4, 9)) if place != damaged]
    assert [frame.moment for frame in frames(bytes(content), Path("a.journal"))] == left
    said = [record.getMessage() for record in caplog.records]
    # Nothing whole lies behind the last one: it is what a crash leaves.
    assert len(said) == (damaged < 4)
    assert all(line.startswith("a.journal: damaged; about ") for line in said)
    if part != "moment" and said:
        assert "about 1 events" in said[0]


def test_several_damaged_frames_are_counted_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    whole = [bytearray(encode(2, moment, {}, {"row": np.zeros(50)})) for moment in range(1, 10)]
    for place in (1, 2, 3, 6):
        whole[place][30] ^= 1
    whole[2][9] ^= 255
    content = START + b"".join(whole) + b"\x02 torn"
    assert [frame.moment for frame in frames(content)] == [1, 5, 6, 8, 9]
    (record,) = caplog.records
    assert "about 4 events" in record.getMessage()


def test_a_damaged_event_costs_its_own_outcomes_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    for _ in range(6):
        step(made, rng)
    (journal,) = (tmp_path / "journals").iterdir()
    content = bytearray(journal.read_bytes())
    at, size = len(START), 0
    for _ in range(4):  # the second tell
        at += size
        size = 17 + int.from_bytes(content[at + 9 : at + 13], "little")
    content[at + 40] ^= 1
    journal.write_bytes(content)
    rows = read_log(tmp_path).to_pylist()
    assert len(rows) == 48
    assert [row["ask"] for row in rows if row["status"] == "open"] == [2] * 8
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [str(journal)]
    log.close()
    assert len(read_log(tmp_path)) == 48
    assert warm_start(curriculum(), tmp_path).outcomes == 40


def test_what_is_missing_is_said_and_no_part_is_overwritten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    for _ in range(3):
        step(made, rng)
        log._settle(final=False)
    log._wait()
    (tmp_path / "outcomes" / "0001-00002.parquet").unlink()
    step(made, rng)
    log.close()
    assert len(list((tmp_path / "outcomes").iterdir())) == 3
    assert not caplog.records
    assert read_log(tmp_path).num_rows == 24
    (record,) = caplog.records
    assert "outcomes/0001-00002.parquet missing from the log" in record.getMessage()
    caplog.clear()
    (tmp_path / "runs" / "0001.json").unlink()
    assert read_log(tmp_path).num_rows == 0
    (record,) = caplog.records
    assert "runs/0001.json missing from the log" in record.getMessage()


@pytest.mark.parametrize("kind", ["missing", "file", "other", "part", "run", "journal", "format"])
def test_what_is_no_log_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "log"
    if kind == "file":
        folder.write_text("x")
    elif kind != "missing":
        folder.mkdir()
    if kind not in ("missing", "file", "other"):
        made = curriculum()
        log = open_log(made, folder)
        step(made, np.random.default_rng(0))
        if kind == "journal":
            next((folder / "journals").iterdir()).write_bytes(b"something else that is long enough")
        else:
            log.close()
        if kind == "part":
            next((folder / "outcomes").iterdir()).write_bytes(b"PAR1 and no more")
        if kind == "run":
            (folder / "runs" / "0001.json").write_text('{"format": 1}')
        if kind == "format":
            (folder / "runs" / "0001.json").write_text('{"format": 2}')
    with pytest.raises(CurriculaValueError, match=r"^[^\n]*: expected [^\n]*; got [^\n]*$"):
        read_log(folder)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CurriculaValueError, match="expected a folder that can be written"):
        open_log(curriculum(), tmp_path / "file")


def test_a_load_that_fails_leaves_the_running_log_open(tmp_path: Path) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    step(made, rng)
    state = log.state_dict()
    (tmp_path / "runs" / "0009.json").write_text("{")
    run, before = log._run, (log._moment, log._continues, log._open)
    with pytest.raises(CurriculaValueError, match="damaged"):
        log.load(Reader(state, "log"))
    assert log._run is run is not None
    assert (log._moment, log._continues, log._open) == before
    (tmp_path / "runs" / "0009.json").unlink()
    step(made, rng)
    log.close()
    assert {row["run"] for row in read_log(tmp_path).to_pylist()} == {1}
