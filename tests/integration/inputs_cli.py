"""Cases of tests/INPUTS.md: the command line. A refusal is one line on standard error, and exit code 2."""

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

from curricula import CurriculaValueError
from curricula.cli import main

SUMS = "environments: {sums: {source: {type: reasoning_gym, name: chain_sum, size: 16}}}\n"


def call(*arguments: str) -> str:
    """Runs a command; what it refuses is raised as the error whose line it printed."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as stopped:
            code = stopped.code or 0
    if code == 0:
        return out.getvalue()
    assert code == 2, (code, err.getvalue())
    (line,) = err.getvalue().splitlines()
    raise CurriculaValueError(line)


def command(name: str, text: str, *more: str) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        (folder / "mix.yaml").write_text(text, encoding="utf-8")
        return call(name, str(folder / "mix.yaml"), *more)

    return run


def validate(folder: Path) -> None:
    assert "chain_sum" in command("validate", SUMS)(folder)


def simulate(folder: Path) -> None:
    few = ("--seeds", "1", "--steps", "2", "--groups", "4", "--out", str(folder / "out"))
    assert "not a forecast" in command("simulate", SUMS, *few)(folder)


CASES = {
    "cli-validate": validate,
    "cli-bad-mix": command("train", "curiculum: {}"),
    "cli-missing-mix": lambda folder: call("train", str(folder / "none.yaml")),
    "cli-no-model": command("train", SUMS),
    "cli-missing-model": command("train", SUMS + "model: ./none"),
    "cli-unknown-argument": command("train", SUMS + "model: m\ntrainer: {max_step: 2}"),
    "cli-text-for-number": command("train", SUMS + 'model: m\ntrainer: {max_steps: "2"}'),
    "cli-no-environments": command("train", "model: m"),
    "cli-simulate": simulate,
    "cli-simulate-world": command("simulate", SUMS, "--world", "flat"),
    "cli-simulate-groups": command("simulate", SUMS, "--groups", "17"),
}
