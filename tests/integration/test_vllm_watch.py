"""What a run does when the server is slow, silent, failing or gone: against a small HTTP server of the test's own."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from curricula import CurriculaRuntimeError
from curricula_vllm.watching import patience, watch


class Played(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append(self.path)
        self.answer(200 if self.server.well else 503)

    def do_POST(self) -> None:
        self.server.seen.append(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.act == "drop":
            self.connection.close()
            return
        if self.server.act == "hang":
            self.server.over.wait(20)
        if self.server.act == "slow":
            time.sleep(1.0)
        self.answer(500 if self.server.act == "fail" else 200)

    def answer(self, code: int) -> None:
        self.send_response(code)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b"detailed")

    def log_message(self, *_: Any) -> None:
        pass


class Many(ThreadingHTTPServer):
    request_queue_size = 1024


@pytest.fixture
def server() -> Iterator[Any]:
    served = Many(("127.0.0.1", 0), Played)
    served.act, served.well, served.seen, served.over = "answer", True, [], threading.Event()
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield served
    served.over.set()
    served.shutdown()
    served.server_close()
    thread.join()


def client(server: Any, **limits: float) -> Any:
    made = SimpleNamespace(session=requests.Session(), base_url=f"http://127.0.0.1:{server.server_address[1]}")
    watch(made, **limits)
    return made


def post(made: Any) -> Any:
    return made.session.post(f"{made.base_url}/v1/completions", json={})


def test_an_answer_is_an_answer(server: Any) -> None:
    assert post(client(server, silence=1)).text == "detailed"


def test_a_slow_answer_is_waited_for_while_the_server_is_well(server: Any) -> None:
    server.act = "slow"
    assert post(client(server, silence=0.3)).text == "detailed"
    assert "/health" in server.seen


def test_a_silent_server_is_given_up(server: Any) -> None:
    server.act, server.well = "hang", False
    with pytest.raises(CurriculaRuntimeError, match=r"no sign of life for 0.3 s, asked for /v1/completions: see"):
        post(client(server, silence=0.3))


def test_many_requests_look_after_the_server_as_one(server: Any) -> None:
    server.act = "slow"
    made = client(server, silence=0.8)
    with ThreadPoolExecutor(100) as pool:
        assert {answer.text for answer in pool.map(lambda _: post(made), range(100))} == {"detailed"}
    assert server.seen.count("/v1/completions") == 100
    assert 1 <= server.seen.count("/health") <= 20


def test_a_limit_meant_for_the_start_is_no_hair_trigger() -> None:
    assert [patience(seconds) for seconds in (0.0, 4.0, 240.0, 900.0)] == [240.0, 60.0, 240.0, 900.0]


def test_a_failure_is_told_with_what_the_server_says(server: Any) -> None:
    server.act = "fail"
    with pytest.raises(CurriculaRuntimeError, match=r"failed, asked for /v1/completions \(500: detailed\)"):
        post(client(server, silence=5))
    assert server.seen == ["/v1/completions"]


def test_a_dropped_connection_is_tried_once_more(server: Any) -> None:
    server.act = "drop"
    with pytest.raises(CurriculaRuntimeError, match=r"is gone, asked for /v1/completions \(\w+: .*\): see") as caught:
        post(client(server, silence=5))
    assert "\n" not in str(caught.value)
    assert server.seen == ["/v1/completions"] * 2


def test_a_server_that_is_gone_is_told_at_once(server: Any) -> None:
    made = client(server, silence=60)
    server.shutdown()
    server.server_close()
    with pytest.raises(CurriculaRuntimeError, match=r"is gone, asked for /v1/completions \(.*refused"):
        post(made)
