import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, DatasetDict, Features, Image, Value, concatenate_datasets

from curricula import ConfigError, CurriculaRuntimeError
from curricula.config import as_config
from curricula_envs import Mixed, load_environments

REWARDS = """
def exact(completions, answer, **_):
    return [float(c == a) for c, a in zip(completions, answer)]

def nothing(completions, **_):
    return [None] * len(completions)

def short(completions, **_):
    return [1.0]

async def slow(completions, question, **_):
    return [float(len(c) == len(q)) for c, q in zip(completions, question)]

class Judge:
    def __call__(self, prompts, completions, level, log_extra=None, log_metric=None, trainer_state=None, **kwargs):
        self.seen = sorted(kwargs)
        log_extra("judged", completions)
        return [1.0 if isinstance(value, str) else 0.0 for value in level]

judge = Judge()
value = 3
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / f"{tmp_path.name}_rewards.py").write_text(REWARDS)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    rows(4).to_parquet(str(tmp_path / "maths.parquet"))
    return tmp_path


def rows(size: int, **columns: Any) -> Dataset:
    return Dataset.from_dict(
        {"question": [f"q{i}" for i in range(size)], "solution": [f"a{i}" for i in range(size)], **columns}
    )


def source(path: str = "maths.parquet", **given: Any) -> dict[str, Any]:
    return {"type": "dataset", "path": path, "prompt": "question", "answer": "solution", **given}


def mixed(base: Path, *, reward: str = "exact", **sources: dict[str, Any]) -> Mixed:
    environments = {
        name: {"source": given, "reward": f"{base.name}_rewards:{reward}"}
        if given["type"] == "dataset"
        else {"source": given}
        for name, given in sources.items()
    }
    return load_environments(as_config({"environments": environments}), base)


def arguments(mix: Mixed, completions: list[Any]) -> dict[str, Any]:
    columns = mix.dataset[:]
    prompts = columns.pop("prompt")
    return {"prompts": prompts, "completions": completions, "completion_ids": [[0]] * len(prompts), **columns}


def test_every_format_reads_the_same(base: Path) -> None:
    table = rows(4)
    table.to_json(str(base / "maths.jsonl"))
    table.save_to_disk(str(base / "saved"))
    DatasetDict({"train": table, "test": rows(2)}).save_to_disk(str(base / "splits"))
    (base / "folder").mkdir()
    table.to_parquet(str(base / "folder" / "train.parquet"))
    rows(2).to_parquet(str(base / "folder" / "test.parquet"))
    arrow = next((base / "saved").glob("*.arrow"))
    expected = mixed(base, maths=source())
    assert expected.dataset.column_names == ["prompt", "environment", "level", "uid", "answer"]
    assert expected.dataset["prompt"] == ["q0", "q1", "q2", "q3"]
    for path in ("maths.jsonl", "saved", "splits", "folder", str(arrow), str(base / "maths.parquet")):
        assert mixed(base, maths=source(path)).dataset.to_list() == expected.dataset.to_list(), path
    assert len(mixed(base, maths=source("splits", split="test")).dataset) == 2
    assert len(mixed(base, maths=source("folder", split="test")).dataset) == 2
    assert len(mixed(base, maths=source(split="train[:3]")).dataset) == 3


def test_a_path_is_no_pattern(base: Path) -> None:
    (base / "run [1]").mkdir()
    rows(3).to_parquet(str(base / "run [1]" / "a*b.parquet"))
    assert len(mixed(base, maths=source("run [1]/a*b.parquet")).dataset) == 3


def test_keys(base: Path) -> None:
    rows(3, id=[7, 8, 7]).to_parquet(str(base / "keyed.parquet"))
    assert mixed(base, m=source("keyed.parquet", key="id")).dataset["uid"] == ["m/7", "m/8", "m/7#2"]
    concatenate_datasets([rows(2), rows(1)]).to_parquet(str(base / "twice.parquet"))
    first, _, again = mixed(base, m=source("twice.parquet")).dataset["uid"]
    assert again == f"{first}#2"
    mix = load_environments(
        as_config(
            {
                "environments": {"m": {"source": source(), "reward": f"{base.name}_rewards:exact"}},
                "environment_column": "kind",
                "key": "id",
            }
        ),
        base,
    )
    assert mix.dataset.column_names == ["prompt", "kind", "level", "id", "answer"]
    assert mix.config.key == "id"


def test_each_source_keeps_its_columns(base: Path) -> None:
    rows(2, tries=[1, 2], note=["x", None]).to_parquet(str(base / "a.parquet"))
    rows(2, tries=[0.5, 1.5], extra=[[1], [2, 3]]).to_parquet(str(base / "b.parquet"))
    gym = {"type": "reasoning_gym", "name": "gcd", "size": 1}
    mix = mixed(base, a=source("a.parquet"), b=source("b.parquet"), c=gym)
    assert mix.dataset["tries"] == [1.0, 2.0, 0.5, 1.5, None]
    assert mix.dataset["note"] == ["x", None, None, None, None]
    assert mix.dataset["extra"] == [None, None, [1], [2, 3], None]
    answers = mix.dataset["answer"]
    assert mix.reward(**arguments(mix, [answers[0], "?", answers[2], answers[3], answers[4]])) == [1, 0, 1, 1, 1]


def test_a_functions_own_rows_and_columns(base: Path) -> None:
    rows(2, level=["hard", "easy"], environment=["x", "y"], answer=[5, 6]).to_parquet(str(base / "own.parquet"))
    mix = mixed(base, reward="judge", m=source("own.parquet"), g={"type": "reasoning_gym", "name": "gcd", "size": 1})
    own = ["answer", "own_answer", "own_environment", "own_level", "source_index"]
    assert sorted(mix.dataset.column_names[4:]) == own
    logged: dict[str, list[Any]] = {}
    given = arguments(mix, ["a", "b", "c"])
    extra = {"log_extra": lambda name, values: logged.update({name: values}), "trainer_state": object()}
    assert mix.reward(**given, **extra)[:2] == [1.0, 1.0]
    assert logged == {"judged": ["a", "b", None]}
    judge: Any = sys.modules[f"{base.name}_rewards"].judge
    assert judge.seen == ["answer", "completion_ids", "environment", "own_answer", "question", "solution", "uid"]


def test_names_that_are_taken(base: Path) -> None:
    columns = {name: ["x"] for name in ("uid", "own_uid", "completions", "prompt", "level")}
    rows(1, **columns).to_parquet(str(base / "taken.parquet"))
    mix = mixed(base, reward="judge", m=source("taken.parquet"))
    ours = {"prompt", "environment", "level", "uid", "answer"}
    theirs = {"own_uid", "own_own_uid", "own_completions", "own_prompt", "own_level"}
    assert set(mix.dataset.column_names) == ours | theirs
    assert mix.reward(**arguments(mix, ["a"]), log_extra=lambda *_: None) == [1.0]
    for key, name in (("environment_column", "prompt"), ("key", "environment"), ("key", "level")):
        environments = {"m": {"source": source(), "reward": f"{base.name}_rewards:exact"}}
        with pytest.raises(ConfigError, match=f"config: {key}: expected a name other than"):
            load_environments(as_config({"environments": environments, key: name}), base)


def test_nothing_stays_nothing_and_lengths_are_checked(base: Path) -> None:
    mix = mixed(base, reward="nothing", m=source())
    assert mix.reward(**arguments(mix, ["x"] * 4)) == [None] * 4
    mix = mixed(base, reward="short", m=source())
    with pytest.raises(CurriculaRuntimeError, match="environment m: expected one reward for each of 4 completions"):
        mix.reward(**arguments(mix, ["x"] * 4))
    given = arguments(mix, ["x"] * 4)
    with pytest.raises(CurriculaRuntimeError, match="expected an environment of the mix"):
        mix.reward(**{**given, "environment": ["zzz"] * 4})


def test_async_functions(base: Path) -> None:
    mix = mixed(base, reward="slow", m=source(), g={"type": "reasoning_gym", "name": "gcd", "size": 1})
    assert asyncio.iscoroutinefunction(mix.reward)
    assert mix.reward.__name__ == "reward"
    answer = mix.dataset[4]["answer"]
    assert asyncio.run(mix.reward(**arguments(mix, ["ab", "abc", "", "xy", answer]))) == [1.0, 0.0, 0.0, 1.0, 1.0]


def test_conversations_levels_and_images(base: Path) -> None:
    chat = [[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]] * 2
    message = {"role": Value("string"), "content": Value("string")}
    columns = {"question": [message], "solution": Value("string"), "hard": Value("int32"), "image": Image()}
    pixels = [np.full((4, 4, 3), shade, dtype=np.uint8) for shade in (0, 255)]
    table = Dataset.from_dict(
        {"question": chat, "solution": ["a", "b"], "hard": [3, 1], "image": pixels}, Features(columns)
    )
    table.to_parquet(str(base / "chat.parquet"))
    mix = mixed(base, c=source("chat.parquet", level="hard", instructions="Be kind."), m=source(format="chat"))
    assert mix.dataset["level"] == [3, 1, None, None, None, None]
    assert mix.dataset[0]["prompt"][0] == {"role": "system", "content": "Be kind."}
    assert len(mix.dataset[0]["prompt"]) == 3
    assert mix.dataset[2]["prompt"] == [{"role": "user", "content": "q0"}]
    assert mix.dataset[1]["image"].getpixel((0, 0)) == (255, 255, 255)
    with pytest.raises(ConfigError, match=r"m.source.format: .*one format.*chat in c; set format: chat"):
        mixed(base, c=source("chat.parquet"), m=source())
    with pytest.raises(ConfigError, match=r"c.source.format: expected chat"):
        mixed(base, c=source("chat.parquet", format="text"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "no.parquet"}, "source.path: expected a file or a folder"),
        ({"path": "notes.txt"}, "expected a file of type .parquet"),
        ({"path": "broken.parquet"}, "expected a data set that can be read"),
        ({"path": "broken.jsonl"}, "expected a data set that can be read"),
        ({"path": "empty"}, "expected a data set that can be read"),
        ({"prompt": "text"}, "expected a column of maths.parquet; got 'text'; it has question, solution"),
        ({"answer": "label"}, "source.answer: expected a column"),
        ({"key": "id"}, "source.key: expected a column"),
        ({"level": "solution"}, "expected whole numbers in column 'solution'; got string"),
        ({"split": "tets"}, "expected a data set that can be read"),
        ({"path": "splits", "split": "tets"}, "expected a split of splits; got 'tets'; did you mean test?"),
        ({"path": "splits"}, "source.split: expected one of test, dev; got nothing"),
        ({"path": "saved", "split": "train"}, "expected no split"),
        ({"path": "numbers.parquet", "prompt": "n"}, "expected text or lists of messages in column 'n'; got int64"),
        ({"path": "numbers.parquet", "key": "m"}, "expected a key in every row; got nothing in row 1"),
        ({"path": "numbers.parquet", "prompt": "e"}, "expected a prompt in every row; got '' in row 1"),
        ({"path": "none.parquet"}, "corresponds to no data"),
        ({"path": ""}, "source.path: expected text that is not empty"),
    ],
)  # fmt: skip
def test_one_clear_line(base: Path, given: dict[str, Any], said: str) -> None:
    (base / "notes.txt").write_text("x")
    (base / "broken.parquet").write_bytes(b"PAR1 not really")
    (base / "broken.jsonl").write_text('{"a": 1}\n{"a": [}\n')
    (base / "empty").mkdir()
    rows(2).save_to_disk(str(base / "saved"))
    DatasetDict({"test": rows(1), "dev": rows(1)}).save_to_disk(str(base / "splits"))
    rows(2, n=[1, 2], m=["x", None], e=["x", ""]).to_parquet(str(base / "numbers.parquet"))
    rows(2).select([]).to_parquet(str(base / "none.parquet"))
    with pytest.raises(ConfigError) as caught:
        mixed(base, m=source(**given))
    assert str(caught.value).startswith("config: environments.m.source")
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (None, "expected module:function; got nothing"),
        ("exact", "expected module:function; got 'exact'"),
        ("os.system('x'):y", "expected module:function"),
        ("nowhere:exact", "expected a module that imports; got ModuleNotFoundError from nowhere"),
        ("failing:f", "expected a module that imports; got ZeroDivisionError from failing: division by zero"),
        ("leaving:f", "expected a module that imports; got SystemExit"),
        ("REWARDS:exacd", "expected a function of REWARDS; got 'exacd'; its functions: exact, nothing, short, slow"),
        ("REWARDS:value", "expected a function"),
        ("json:loads", "expected json to be"),
    ],
)
def test_rewards_that_do_not_import(base: Path, reward: str | None, said: str) -> None:
    (base / "failing.py").write_text("1 / 0")
    (base / "leaving.py").write_text("raise SystemExit(3)")
    (base / "json.py").write_text("def loads(): ...")
    own = f"{base.name}_rewards"
    environment = {"source": source(), "reward": reward and reward.replace("REWARDS", own)}
    with pytest.raises(ConfigError) as caught:
        load_environments(as_config({"environments": {"m": environment}}), base)
    assert str(caught.value).startswith("config: environments.m.reward: ")
    assert said.replace("REWARDS", own) in str(caught.value)
    assert str(base) not in sys.path


def test_columns_that_do_not_fit_together(base: Path) -> None:
    rows(2, n=[1, 2]).to_parquet(str(base / "a.parquet"))
    rows(2, n=["x", "y"]).to_parquet(str(base / "b.parquet"))
    with pytest.raises(ConfigError, match=r"environments.b.source: expected column 'n' .*got string, and int64 in a"):
        mixed(base, a=source("a.parquet"), b=source("b.parquet"))
