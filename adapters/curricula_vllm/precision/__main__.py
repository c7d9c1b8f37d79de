"""`python -m curricula_vllm.precision JOB PLAN.json FOUND.json OUT.json`: one part of a measurement."""

import json
import sys
from pathlib import Path

from curricula.errors import CurriculaValueError, described
from curricula_vllm.precision.jobs import JOBS
from curricula_vllm.precision.plan import Plan


def main(job: str, plan: str, found: str, out: str) -> None:
    """Runs a job; what it found, or the error it ended with, is written as JSON."""
    read = [json.loads(Path(path).read_text(encoding="utf-8")) for path in (plan, found)]
    result, failed = None, None
    try:
        result = JOBS[job](Plan(**read[0]), read[1])
    except CurriculaValueError as error:
        result = {"error": str(error), "input": True}
    except Exception as error:  # whatever a host raises is one line of the command's, and a traceback here
        result, failed = {"error": described(error)}, error
    Path(out).write_text(json.dumps(result), encoding="utf-8")
    if failed is not None:
        raise failed


# vLLM may start processes that import this module anew.
if __name__ == "__main__":
    main(*sys.argv[1:])
