"""`python -m curricula_vllm serve MODEL`: see `curricula_vllm.serve`."""

import sys

from curricula.errors import CurriculaError, CurriculaValueError
from curricula_vllm import serve

# vLLM starts processes that import this module anew.
if __name__ == "__main__":
    if sys.argv[1:2] != ["serve"] or len(sys.argv) < 3:
        sys.exit(f"{(serve.__doc__ or '').split(chr(10) * 2)[1].strip()}")
    try:
        serve.serve(sys.argv[2:])
    except CurriculaError as error:
        print(f"curricula_vllm: {error}", file=sys.stderr, flush=True)
        sys.exit(2 if isinstance(error, CurriculaValueError) else 1)
