"""What a test needs that is not installed everywhere."""

import os
import platform
import sys
from importlib.util import find_spec

import pytest


def needs_vllm() -> None:
    """Skips a module, or a test, where vLLM is not installed; where CI must have installed it, that is a failure."""
    if find_spec("vllm") is not None:
        return
    reason = "vLLM is not installed: `make test` does so on Linux x86-64"
    if os.environ.get("CI") and sys.platform == "linux" and platform.machine() == "x86_64":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)
