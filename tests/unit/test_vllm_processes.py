"""Processes that are killed: what they leave in shared memory, and servers that end with them. Real SIGKILLs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("vLLM does not run there", allow_module_level=True)

SENDER = """
import time, torch
from curricula_vllm import shared
def post(path):
    print(path, flush=True)
    time.sleep(600)
shared.send([("a", torch.zeros(1000))], post)
"""

# In a group of its own, with a process of its own there, as vLLM has.
SERVED = """
import subprocess, sys, time
from curricula_vllm.serve import end_with
end_with(int(sys.argv[1]), pause=0.05)
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(inner.pid, flush=True)
time.sleep(600)
"""

PARENT = f"""
import os, subprocess, sys, time
made = subprocess.Popen([sys.executable, "-c", {SERVED!r}, str(os.getpid())], start_new_session=True)
print(made.pid, flush=True)
time.sleep(600)
"""


def started(script: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def runs(pid: int) -> bool:
    """Whether there is such a process; one that ended and that nobody has waited for is none."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(shown) and not shown.startswith("Z")


def test_weights_of_a_killed_run_go_with_the_next_ones() -> None:
    import torch

    from curricula_vllm.shared import send

    dead, alive = started(SENDER), started(SENDER)
    try:
        left, used = Path(said(dead)), Path(said(alive))
        end(dead)
        assert left.is_file()
        send([("a", torch.zeros(3))], lambda path: None)
        assert not left.parent.exists()
        assert used.is_file()
    finally:
        end(alive)
    send([], lambda path: None)
    assert not used.parent.exists()


def test_a_server_ends_with_a_parent_that_is_killed() -> None:
    parent = started(PARENT)
    pids = [int(said(parent)), int(said(parent))]
    try:
        end(parent)
        limit = time.monotonic() + 20
        while any(map(runs, pids)) and time.monotonic() < limit:
            time.sleep(0.05)
        assert not any(map(runs, pids))
    finally:
        for pid in filter(runs, pids):
            os.kill(pid, signal.SIGKILL)
