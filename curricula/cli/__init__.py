"""The command line `curricula`. Each command is a file of this folder; `app` puts them together."""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from curricula.errors import CurriculaError, CurriculaValueError
from curricula.versions import require

DONE, FAILED, WRONG_INPUT = 0, 1, 2
"""Exit codes."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits: 0 done, 1 failed, 2 wrong input.

    An error of this package is one line on stderr. Anything else is a fault of ours or of the user's own code,
    and keeps its traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # The name of an environment must not end a command on a terminal that cannot show it.
            stream.reconfigure(errors="backslashreplace")
    path = sys.path[:]
    try:
        require("cli", ("typer", "rich"))
        from curricula.cli.app import app
        from curricula.cli.ending import ended

        with ended():
            app(list(arguments) if arguments is not None else None, prog_name="curricula", standalone_mode=True)
    except CurriculaError as error:
        code = _code(error)
        # Every rank reads the same input, so rank 0 speaks for all of them; a failure may be one rank's own.
        if is_main() or code == FAILED:
            print(f"curricula: {' '.join(str(error).splitlines())}", file=sys.stderr, flush=True)
        sys.exit(code)
    finally:
        sys.path[:] = path


def import_beside(mix: Path) -> None:
    """Lets this command find classes that a mix names beside it too, after all that is installed."""
    sys.path.append(str(mix.parent.resolve()))


def is_main() -> bool:
    """Whether this process is rank 0, or not part of a distributed run."""
    return os.environ.get("RANK", "0") == "0"


def _code(error: CurriculaError) -> int:
    return WRONG_INPUT if isinstance(error, CurriculaValueError) else FAILED
