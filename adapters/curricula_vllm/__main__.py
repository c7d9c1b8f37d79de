"""`python -m curricula_vllm serve MODEL`: see `curricula_vllm.serve`."""

import sys

from curricula_vllm import serve

# vLLM starts processes that import this module anew.
if __name__ == "__main__":
    if sys.argv[1:2] != ["serve"] or len(sys.argv) < 3:
        sys.exit(f"{(serve.__doc__ or '').split(chr(10) * 2)[1].strip()}")
    serve.serve(sys.argv[2:])
