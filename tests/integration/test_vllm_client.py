"""Requests of `complete` to a server, which is played: how many at a time, and with which limits."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from needs import needs_vllm

from curricula_vllm import client
from curricula_vllm.client import complete


class Played:
    """Answers when as many requests as it waits for are there."""

    base_url, model = "http://played", "m"

    def __init__(self, together: int) -> None:
        self.asked: list[dict[str, Any]] = []
        self._gate = threading.Barrier(together)

    def _post(self, url: str, json: dict[str, Any]) -> dict[str, Any]:
        self._gate.wait(timeout=30)
        self.asked.append(json)
        return {
            "choices": [
                {"index": at, "token_ids": prompt, "logprobs": {"token_logprobs": [-1.0]}, "finish_reason": "stop"}
                for at, prompt in enumerate(json["prompt"])
            ]
        }


def test_rows_of_a_batch_are_with_the_server_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (4096, 4096))
    played = Played(300)
    done = complete(played, [[row] for row in range(300)], range(1, 301))
    assert [row.token_ids for row in done] == [[row] for row in range(300)]


@pytest.mark.parametrize(("files", "most"), [(-1, 1024), (1024, 512), (1_000_000, 1024), (1, 1)])
def test_connections_leave_half_of_the_open_files(files: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (files, files))
    assert client._most() == most


def test_the_fewest_tokens_give_way_to_a_rows_limit() -> None:
    played = Played(1)
    complete(played, [[1], [2], [3]], [2, 2, 9], {"min_tokens": 5})
    found = {asked["max_tokens"]: asked["min_tokens"] for asked in played.asked}
    assert found == {2: 2, 9: 5}
    complete(played, [[1]], [2])
    assert "min_tokens" not in played.asked[-1]


def test_and_so_in_the_process() -> None:
    needs_vllm()
    seen: list[Any] = []

    def generate(inputs: Any, sampling_params: Any, use_tqdm: bool) -> list[Any]:
        seen.extend(sampling_params)
        output = SimpleNamespace(token_ids=[], logprobs=[], finish_reason="length")
        return [SimpleNamespace(outputs=[output]) for _ in inputs]

    complete(SimpleNamespace(llm_engine=None, generate=generate), [[1], [2]], [2, 9], {"min_tokens": 5})
    assert [(row.max_tokens, row.min_tokens) for row in seen] == [(2, 2), (9, 5)]
