"""A limit on how long a run waits for a vLLM server that has died or has stopped answering.

TRL's client tries again six times and waits for an answer without end. A generation may well take an hour, so the
limit is not on the answer: it is on the time without a sign of life, which the server's /health gives at any time.
"""

import queue
import threading
import time
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from curricula.errors import CurriculaRuntimeError, described

# TRL's default of vllm_server_timeout; and the least, for TRL means that as a wait for the start of a server.
SILENCE = 240.0
LEAST = 60.0
# Requests of one client at a time, and so connections that it keeps.
CONNECTIONS = 1024

_REMEDY = "see the server's log, start it again, and resume from the last checkpoint"


def watch(client: Any, silence: float = SILENCE) -> None:
    """Puts the limits on a client of TRL's; a second call replaces the first one's limits.

    Args:
        client: TRL's `VLLMClient`, or another object with its `session` and `base_url`.
        silence: Seconds without a sign of life after which the server is given up.

    A request that fails ends with a `CurriculaRuntimeError` of one line.
    """
    adapter = _Watched(client.base_url, silence)
    for scheme in ("http://", "https://"):
        client.session.mount(scheme, adapter)


def patience(server_timeout: float) -> float:
    """Seconds of silence that a run bears, by TRL's `vllm_server_timeout`."""
    return max(server_timeout or SILENCE, LEAST)


class _Watched(HTTPAdapter):
    """Sends in a thread of its own, and looks after the server meanwhile."""

    def __init__(self, url: str, silence: float) -> None:
        # Once more, at once, for a connection that the server closed for being idle. Not later: a server that was
        # started again has other weights.
        again = Retry(
            total=3, connect=1, read=1, status=3, status_forcelist=[502, 503], backoff_factor=0.5, allowed_methods=None
        )
        super().__init__(max_retries=again, pool_maxsize=CONNECTIONS)
        self._url, self._silence = url, silence
        # Of all requests that wait, one at a time looks after the server.
        self._looking, self._seen = threading.Lock(), float("-inf")

    def send(self, request: Any, stream: bool = False, timeout: Any = None, *others: Any, **keywords: Any) -> Any:
        box: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def work() -> None:
            try:
                response = super(_Watched, self).send(request, stream, timeout, *others, **keywords)
                if not stream:
                    _ = response.content
                box.put(response)
            except BaseException as error:
                box.put(error)

        threading.Thread(target=work, name="curricula-vllm", daemon=True).start()
        got = self._wait(box, request.path_url)
        if isinstance(got, requests.RequestException):
            reason = described(_innermost(got))
            raise CurriculaRuntimeError(
                f"the vLLM server at {self._url} is gone, asked for {request.path_url} ({reason}): {_REMEDY}"
            ) from got
        if isinstance(got, BaseException):
            raise got
        if got.status_code >= 500:
            said = " ".join(got.text.split())[:300]
            other = "if it serves another model than is trained, start it with that one; " if _sends(request) else ""
            raise CurriculaRuntimeError(
                f"the vLLM server at {self._url} failed, asked for {request.path_url} ({got.status_code}: {said}): "
                f"{other}{_REMEDY}"
            )
        return got

    def _wait(self, box: "queue.SimpleQueue[Any]", path: str) -> Any:
        began = time.monotonic()
        pause = min(5.0, max(self._silence / 4, 0.05))
        while True:
            try:
                return box.get(timeout=pause)
            except queue.Empty:
                pass
            self._look(pause)
            if time.monotonic() - max(began, self._seen) > self._silence:
                raise CurriculaRuntimeError(
                    f"the vLLM server at {self._url} has given no sign of life for {self._silence:g} s, asked for "
                    f"{path}: {_REMEDY}"
                )

    def _look(self, pause: float) -> None:
        if self._looking.acquire(blocking=False):
            try:
                if time.monotonic() - self._seen >= pause and self._is_well(pause):
                    self._seen = time.monotonic()
            finally:
                self._looking.release()

    def _is_well(self, limit: float) -> bool:
        try:
            return requests.get(f"{self._url}/health", timeout=limit).status_code == 200
        except requests.RequestException:
            return False


def _sends(request: Any) -> bool:
    """Whether it is weights that are sent."""
    return request.path_url.startswith("/update_weights")


def _innermost(error: BaseException) -> BaseException:
    """What was wrong at the bottom of the errors that requests and urllib3 wrap in one another."""
    while inner := [part for part in (getattr(error, "reason", None), *error.args) if isinstance(part, BaseException)]:
        error = inner[0]
    return error
