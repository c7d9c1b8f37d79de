"""Which rollouts were cut off: those without an end that had all the tokens which they may have."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from curricula_trl.room import Room
from curricula_trl.rounds import truncated

ONE: Any = SimpleNamespace(from_main=lambda produce: produce())
EOS, PAD = 1, 0
PROMPTS = {"prompt_mask": torch.tensor([[0, 0, 1], [1, 1, 1]])}


def trainer(**settings: Any) -> Any:
    words = SimpleNamespace(eos_token_id=EOS, pad_token_id=PAD)
    given = {"max_completion_length": 32, "use_vllm": False, "args": SimpleNamespace(generation_kwargs=None)}
    generation = SimpleNamespace(max_new_tokens=settings.get("max_completion_length", 32))
    return SimpleNamespace(**given | {"processing_class": words, "generation_config": generation} | settings)


def engine(longest: int) -> Any:
    config = SimpleNamespace(model_config=SimpleNamespace(max_model_len=longest))
    return SimpleNamespace(llm=SimpleNamespace(llm_engine=config))


def test_transformers_has_the_trainers_limit() -> None:
    assert Room(ONE).limits(trainer(), PROMPTS) == [32, 32]
    longer = SimpleNamespace(max_new_tokens=40)  # by generation_kwargs, which TRL puts over it
    assert Room(ONE).limits(trainer(generation_config=longer), PROMPTS) == [40, 40]


@pytest.mark.parametrize(("longest", "kwargs", "limits"), [(99, None, 32), (20, None, 0), (99, {"max_tokens": 8}, 8)])
def test_an_engine_has_room_for_prompt_and_rollout(longest: int, kwargs: Any, limits: int) -> None:
    args = SimpleNamespace(generation_kwargs=kwargs)
    host = trainer(use_vllm=True, vllm_mode="colocate", vllm_generation=engine(longest), args=args)
    assert Room(ONE).limits(host, PROMPTS) == ([limits, limits] if limits else [longest - 1, longest - 3])


def test_a_server_is_asked_once() -> None:
    asked: list[str] = []

    def get(url: str) -> Any:
        asked.append(url)
        return {"data": [{"max_model_len": 10}]}

    client = SimpleNamespace(_get=get, base_url="http://here")
    generation = SimpleNamespace(vllm_client=client)
    host = trainer(use_vllm=True, vllm_mode="server", vllm_generation=generation)
    room = Room(ONE)
    assert [room.limits(host, PROMPTS) for _ in range(2)] == [[9, 7]] * 2
    assert asked == ["http://here/v1/models"]


@pytest.mark.parametrize("answer", [{"data": []}, {"data": [{}]}, {}, Exception("Request failed: 404, no such route")])
def test_of_a_server_that_does_not_say_the_trainers_limit_is_known(answer: Any) -> None:
    def get(_: str) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    generation = SimpleNamespace(vllm_client=SimpleNamespace(_get=get, base_url="http://here"))
    host = trainer(use_vllm=True, vllm_mode="server", vllm_generation=generation)
    assert Room(ONE).limits(host, PROMPTS) == [32, 32]


def test_a_server_that_fails_is_not_passed_over() -> None:
    def get(_: str) -> Any:
        raise Exception("Request failed: 500, no memory")

    generation = SimpleNamespace(vllm_client=SimpleNamespace(_get=get, base_url="http://here"))
    with pytest.raises(Exception, match="500, no memory"):
        Room(ONE).limits(trainer(use_vllm=True, vllm_mode="server", vllm_generation=generation), PROMPTS)


def test_a_rollout_function_has_limits_of_its_own() -> None:
    assert Room(ONE).limits(trainer(rollout_func=print), PROMPTS) == [None, None]


def test_what_a_stop_string_ended_was_not_cut_off() -> None:
    rows = [[5, 6, 7], [5, 6, 7], [5, 6, EOS], [5, PAD], []]
    assert truncated(trainer(), rows, [False, True, True, True, True]) == [False, True, False, False, False]
