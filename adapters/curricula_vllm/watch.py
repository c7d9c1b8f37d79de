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

# TRL's default of vllm_server_timeout, and the longest that one request may take while the server says it is well.
SILENCE = 240.0
LONGEST = 3600.0

_REMEDY = "see the server's log, start it again, and resume from the last checkpoint"


def watch(client: Any, silence: float = SILENCE, longest: float = LONGEST) -> None:
    """Puts the limits on a client of TRL's; a second call replaces the first one's limits.

    Args:
        client: TRL's `VLLMClient`, or another object with its `session` and `base_url`.
        silence: Seconds without a sign of life after which the server is given up.
        longest: Seconds that one request may take.

    A request that fails ends with a `CurriculaRuntimeError` of one line.
    """
    adapter = _Watched(client.base_url, silence, longest)
    for scheme in ("http://", "https://"):
        client.session.mount(scheme, adapter)


class _Watched(HTTPAdapter):
    """Sends in a thread of its own, and looks after the server meanwhile."""

    def __init__(self, url: str, silence: float, longest: float) -> None:
        # Once more, at once, for a connection that the server closed for being idle. Not later: a server that was
        # started again has other weights.
        again = Retry(
            total=3, connect=1, read=1, status=3, status_forcelist=[502, 503], backoff_factor=0.5, allowed_methods=None
        )
        super().__init__(max_retries=again, pool_maxsize=64)
        self._url, self._silence, self._longest = url, silence, longest

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
            raise CurriculaRuntimeError(
                f"the vLLM server at {self._url} failed, asked for {request.path_url} ({got.status_code}: {said}): "
                f"{_REMEDY}"
            )
        return got

    def _wait(self, box: "queue.SimpleQueue[Any]", path: str) -> Any:
        began = alive = time.monotonic()
        while True:
            pause = min(5.0, max(self._silence / 4, 0.05))
            try:
                return box.get(timeout=pause)
            except queue.Empty:
                pass
            if self._is_well(pause):
                alive = time.monotonic()
            now = time.monotonic()
            if now - alive > self._silence:
                raise CurriculaRuntimeError(
                    f"the vLLM server at {self._url} has given no sign of life for {self._silence:g} s, asked for "
                    f"{path}: {_REMEDY}"
                )
            if now - began > self._longest:
                raise CurriculaRuntimeError(
                    f"the vLLM server at {self._url} has not answered {path} in {self._longest:g} s: {_REMEDY}"
                )

    def _is_well(self, limit: float) -> bool:
        try:
            return requests.get(f"{self._url}/health", timeout=limit).status_code == 200
        except requests.RequestException:
            return False


def _innermost(error: BaseException) -> BaseException:
    """What was wrong at the bottom of the errors that requests and urllib3 wrap in one another."""
    while inner := [part for part in (getattr(error, "reason", None), *error.args) if isinstance(part, BaseException)]:
        error = inner[0]
    return error
