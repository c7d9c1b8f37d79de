"""Cases of tests/INPUTS.md: outcome logs."""

from collections.abc import Callable
from pathlib import Path

from inputs_cli import call

from curricula import Curriculum, GroupOutcome, OutcomeLog, PromptPool, open_log, read_log, warm_start


def write(folder: Path, key: str = "k") -> OutcomeLog:
    made = Curriculum(PromptPool(["sums"] * 4, keys=[f"{key}{row}" for row in range(4)]), seed=0)
    log = open_log(made, folder)
    made.tell([GroupOutcome(draw.ticket, [0.0, 1.0]) for draw in made.ask(3, group_size=2)])
    return log


def other(key: str = "k") -> Curriculum:
    return Curriculum(PromptPool(["sums"] * 9, keys=[f"{key}{row}" for row in reversed(range(9))]), seed=0)


def killed(folder: Path) -> None:
    write(folder)  # and never closed
    (journal,) = (folder / "journals").iterdir()
    with journal.open("ab") as file:
        file.write(b"\x02 the beginning of a frame")
    assert read_log(folder).num_rows == 3


def moved(folder: Path) -> None:
    write(folder).close()
    assert warm_start(other(), folder).outcomes == 3


def damaged(folder: Path) -> None:
    write(folder).close()
    (part,) = (folder / "outcomes").iterdir()
    part.write_bytes(part.read_bytes()[:-40])
    read_log(folder)


def damaged_run(folder: Path) -> None:
    write(folder).close()
    (folder / "runs" / "0001.json").write_text("{}", encoding="utf-8")
    open_log(other(), folder)


def other_data(folder: Path) -> None:
    write(folder).close()
    warm_start(other("another "), folder)


def unwritable(folder: Path) -> None:
    (folder / "file").write_text("x", encoding="utf-8")
    open_log(other(), folder / "file" / "log")


def replayed(mix: str, asks: bool = True) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        if asks:
            write(folder / "log").close()
        else:
            open_log(other(), folder / "log")
        (folder / "mix.yaml").write_text(mix, encoding="utf-8")
        return call("replay", str(folder / "log"), "--with", str(folder / "mix.yaml"))

    return run


CASES = {
    "log-killed": killed,
    "log-other-order": moved,
    "log-missing": lambda folder: read_log(folder / "none"),
    "log-no-log": read_log,
    "log-damaged": damaged,
    "log-damaged-run": damaged_run,
    "log-other-data": other_data,
    "log-unwritable": unwritable,
    "log-replay-empty": replayed("", asks=False),
    "log-replay-environment": replayed("environments: {sum: {weight: 2}}"),
}
