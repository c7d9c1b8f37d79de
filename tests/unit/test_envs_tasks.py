import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from curricula import ConfigError
from curricula.config import as_config
from curricula_envs import Mixed, load_environments


def mixed(base: Path = Path(), **environments: Any) -> Mixed:
    return load_environments(as_config({"environments": environments}), base)


def gym(name: str = "chain_sum", **source: Any) -> dict[str, Any]:
    return {"source": {"type": "reasoning_gym", "name": name, "size": 12, **source}}


def score(mix: Mixed, completions: list[Any]) -> list[float | None]:
    columns = mix.dataset[:]
    rows = {name: values for name, values in columns.items() if name != "prompt"}
    return mix.reward(
        prompts=columns["prompt"], completions=completions, completion_ids=[[0]] * len(mix.dataset), **rows
    )


def test_prompts_and_their_own_scoring() -> None:
    mix = mixed(sums=gym(), divisors=gym("gcd", size=5))
    assert mix.dataset.column_names == ["prompt", "environment", "level", "uid", "answer", "source_index"]
    assert mix.dataset["environment"] == ["sums"] * 12 + ["divisors"] * 5
    assert mix.sizes == {"sums": 12, "divisors": 5}
    assert set(mix.dataset["level"]) == {None}
    assert len(set(mix.dataset["uid"])) == 17
    assert mix.reward.__name__ == "reward"
    answers = mix.dataset["answer"]
    assert score(mix, list(answers)) == [1.0] * 17
    assert score(mix, [f"  {answer}\n" for answer in answers]) == [1.0] * 17
    assert score(mix, ["no idea"] * 17) == [0.0] * 17


def test_levels_are_difficulties_of_their_own() -> None:
    mix = mixed(sums={**gym(size=10, levels=[1, 3]), "levels": [1, 2]})
    assert mix.dataset["level"] == [1] * 4 + [2] * 3 + [3] * 3
    terms = [prompt.count(" + ") + prompt.count(" - ") + 1 for prompt in mix.dataset["prompt"]]
    assert terms == [3] * 4 + [4] * 3 + [5] * 3
    assert score(mix, list(mix.dataset["answer"])) == [1.0] * 10
    pinned = mixed(sums=gym(size=4, levels=[1, 2], config={"min_digits": 1, "max_digits": 1}))
    assert all(int(word) < 10 for prompt in pinned.dataset["prompt"] for word in prompt.split() if word.isdigit())


def test_prompts_are_a_function_of_the_source() -> None:
    uids = mixed(sums=gym(seed=5)).dataset["uid"]
    assert uids == mixed(sums=gym(seed=5)).dataset["uid"]
    assert not set(uids) & set(mixed(sums=gym(seed=500)).dataset["uid"])
    assert not set(uids) & set(mixed(other=gym(seed=5)).dataset["uid"])


def test_chat_instructions_and_answer_tag() -> None:
    mix = mixed(sums=gym(format="chat", instructions="Answer in tags.", answer_tag="answer"))
    first = mix.dataset[0]
    assert [message["role"] for message in first["prompt"]] == ["system", "user"]
    assert first["prompt"][0]["content"] == "Answer in tags."
    said = [f"so <answer>0</answer>… <answer> {answer} </answer>" for answer in mix.dataset["answer"]]
    assert score(mix, [[{"role": "assistant", "content": text}] for text in said]) == [1.0] * 12
    assert score(mix, [[{"role": "assistant", "content": answer}] for answer in mix.dataset["answer"]]) == [0.0] * 12
    assert score(mix, [[{"role": "assistant", "content": None}], [], *[[]] * 10]) == [0.0] * 12
    plain = mixed(sums=gym(instructions="Be brief."))
    assert plain.dataset[0]["prompt"].startswith("Be brief.\n\n")


def test_an_answer_that_cannot_be_scored_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    mix = mixed(factors=gym("prime_factorization", size=3))
    assert score(mix, ["not a number", "[[", mix.dataset[2]["answer"]]) == [0.0, 0.0, 1.0]
    assert [record.getMessage() for record in caplog.records if "could not score 'not a number'" in record.getMessage()]
    assert len(caplog.records) == 1


def test_a_reward_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "gym_rewards.py").write_text(
        "def short(completions, **_):\n    return [-len(c) for c in completions]\n"
    )
    mix = mixed(tmp_path, sums={**gym(size=2), "reward": "gym_rewards:short"})
    assert score(mix, ["a", "abc"]) == [-1, -3]


def test_tasks_whose_prompts_depend_on_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with pytest.raises(ConfigError, match=r"environments.ladder.source.name: .*PYTHONHASHSEED=0"):
        mixed(ladder=gym("word_ladder"))
    code = (
        "from curricula.config import as_config; from curricula_envs import load_environments as load\n"
        "source = {'type': 'reasoning_gym', 'name': 'ransom_note', 'size': 20}\n"
        "print(load(as_config({'environments': {'e': {'source': source}}})).dataset['uid'])"
    )
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}:{root / 'adapters'}")
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    seen = {subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout for _ in range(2)}
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "environments.sums.source: expected a source; got nothing"),
        ({"source": {"name": "x"}}, "source.type: expected a type of source (reasoning_gym, dataset); got nothing"),
        ({"source": {"type": "reasoning_gim"}}, "did you mean reasoning_gym?"),
        ({"source": {"type": "reasoning_gym"}}, "source.name: expected this key; got nothing"),
        (gym(sise=3), "source.sise: expected a known key; got 'sise'; did you mean size?"),
        (gym(size="3"), "source.size: expected a whole number; got '3'; remove the quotes"),
        (gym(size=0), "source.size: expected a number >= 1; got 0"),
        (gym("chain_sums"), "source.name: expected a task of reasoning-gym; got 'chain_sums'; did you mean chain_sum?"),
        (gym("qqqq"), "see reasoning_gym.factory.DATASETS"),
        (gym("composite"), "write its parts as environments"),
        (gym("codeio"), "differ between processes"),
        (
            gym(config={"min_term": 2}),
            "source.config.min_term: expected a setting of chain_sum; got 'min_term'; did you",
        ),
        (gym(config={"min_terms": 9, "max_terms": 2}), "source.config: expected settings that chain_sum accepts"),
        (gym(config={"min_terms": "x"}), "source.config: expected settings that chain_sum accepts"),
        (gym(config={"seed": 2}), "seed beside config"),
        (gym(levels=[3, 1]), "0 <= low <= high"),
        (gym(levels=[0, 99], size=200), "source.levels: expected levels of chain_sum from 0 to 10; got [0, 99]"),
        (gym(levels=[0, 5], size=3), "at least one prompt for each of 6 levels; got size 3"),
        (gym("gsm_symbolic", levels=[0, 1]), "expected no levels, gsm_symbolic has none"),
        ({**gym(), "levels": [0, 1]}, "environments.sums.levels: expected no levels, its prompts have none"),
        ({**gym(levels=[2, 3]), "levels": [0, 1]}, "levels: expected levels between 2 and 3; got [0, 1]"),
        (gym(format="plain"), "expected one of text, chat; got 'plain'"),
        (gym(answer_tag="a b"), "source.answer_tag"),
        ({**gym(), "reward": "nowhere:at_all"}, "environments.sums.reward: expected a module that imports"),
    ],
)
def test_one_clear_line(environment: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mixed(sums=environment)
    assert str(caught.value).startswith("config: environments.sums")
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_no_environments() -> None:
    with pytest.raises(ConfigError, match="at least one environment"):
        mixed()
