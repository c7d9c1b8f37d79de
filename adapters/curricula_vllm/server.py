"""A vLLM server of one's own, for as long as a script or a test needs it."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import requests

from curricula.errors import CurriculaRuntimeError
from curricula_vllm.plugin import FP32_HEAD, PARENT


class Server:
    """`python -m curricula_vllm serve`, started and waited for, and stopped at the end of a `with` or of this process.

        with Server("models/mine", "--dtype", "float32") as server:
            GRPOConfig(use_vllm=True, vllm_mode="server", vllm_server_base_url=server.url, …)

    Args:
        model: A folder, or a name on a hub.
        arguments: Further arguments of `vllm serve`.
        fp32_head: Whether the head computes in float32.
        environment: Variables of the server's own.
        log: File that the server writes to; a temporary one where it is left out.
        limit: Seconds within which it must be ready.

    Raises:
        CurriculaRuntimeError: It died, or was not ready in time: one line, with the last that it said of an error.
    """

    def __init__(
        self,
        model: str | Path,
        *arguments: str,
        fp32_head: bool = False,
        environment: Mapping[str, str] | None = None,
        log: str | Path | None = None,
        limit: float = 240.0,
    ) -> None:
        if log is None:
            handle, name = tempfile.mkstemp(prefix="curricula-vllm-", suffix=".log")
            os.close(handle)
            log = name
        self.log = Path(log)
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command: Sequence[str] = [
            *(sys.executable, "-m", "curricula_vllm", "serve", str(model)),
            *("--host", "127.0.0.1", "--port", str(self.port), *arguments),
        ]
        own = {FP32_HEAD: "1" if fp32_head else "0", PARENT: str(os.getpid())}
        self._environment = {**os.environ, **(environment or {}), **own}
        self._limit = limit
        self.process: subprocess.Popen[bytes] | None = None
        self._end: Any = None

    def start(self) -> Self:
        """Starts it, and returns when it is ready."""
        with self.log.open("wb") as log:
            # A session of its own: vLLM has further processes, which end with it.
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._end = weakref.finalize(self, _end, self.process)
        limit = time.monotonic() + self._limit
        while not self._is_ready():
            if (code := self.process.poll()) is not None:
                self.stop()
                raise CurriculaRuntimeError(
                    f"vllm serve: ended with {code} before it was ready ({self._last_error()}); all it said: {self.log}"
                )
            if time.monotonic() > limit:
                self.stop()
                raise CurriculaRuntimeError(
                    f"vllm serve: not ready after {self._limit:g} s: give it longer; what it said: {self.log}"
                )
            time.sleep(0.5)
        return self

    def kill(self) -> None:
        """Ends it at once, as a crash would."""
        if self.process is not None:
            _signal(self.process, signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        """Ends it; again is nothing."""
        if self._end is not None:
            self._end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/health", timeout=2).status_code == 200
        except requests.RequestException:
            return False

    def _last_error(self) -> str:
        lines = [line.strip() for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines()]
        said = [line for line in lines if "Error" in line] or [line for line in lines if line]
        return said[-1][-300:] if said else "it said nothing"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    # The group outlives its leader where that was killed: vLLM's engine is in it.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
    _signal(process, signal.SIGKILL)
    process.wait()
