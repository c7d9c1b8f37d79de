import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from curricula import ConfigError, CurriculumConfig, load_mix
from curricula.config import as_config, check_shares, launcher_keys, resolved, share_bounds
from curricula.config.parse import parse


def load(folder: Path, text: str | bytes) -> CurriculumConfig:
    file = folder / "mix.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_mix(file)


BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{this}: &{this} [{', '.join([f'*{last}'] * 9)}]\n" for last, this in itertools.pairwise("abcdefgh")
)
NOTHING = ["", "\n\n", "# nothing\n", "---\n", "{}", "null", "\ufeffseed: 0", "seed:\ncurriculum:\n"]


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_left_out_is_the_default(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == CurriculumConfig()


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("monitor:\n  windw: 9", "monitor.windw (line 2)", "did you mean window?"),
        ("curiculum: {}", "curiculum (line 1)", "did you mean curriculum?"),
        ("shares: {from: scaling}", "shares (line 1)", "did you mean curriculum.shares?"),
        ("curriculum:\n  refill: {}", "curriculum.refill (line 2)", "did you mean refill?"),
        ("curriculum:\n  filters:\n  - {type: zero_variance, tol: 1}", "curriculum.filters[0].tol (line 3)", "toler"),
        ("a: &a {}\nb: &b {}\nsuccess:\n  <<: *a\n  <<: *b", "success.'<<' (line 5)", "got it twice"),
        ("seed: one", "seed (line 1)", "expected a whole number; got 'one'"),
        ("seed: 1.5", "seed (line 1)", "expected a whole number; got 1.5"),
        ("seed: true", "seed (line 1)", "expected a whole number; got true"),
        ("seed: -1", "seed (line 1)", "expected a number >= 0; got -1"),
        ("seed: '7'", "seed (line 1)", "remove the quotes"),
        ("curriculum: {probe: 2020-01-01}", "curriculum.probe (line 1)", "expected a number; got '2020-01-01'"),
        ("model: 7", "model (line 1)", "expected text; got 7; put it in quotes"),
        ("model: ''", "model (line 1)", "expected text that is not empty"),
        ("monitor: 3", "monitor (line 1)", "expected a mapping of keys; got 3"),
        ("monitor: {window: 7}", "monitor.window (line 1)", "expected a number >= 8; got 7"),
        ("monitor: {trackers: mlflow}", "monitor.trackers (line 1)", "expected auto, or a list"),
        ("monitor:\n  trackers:\n  - mlflow\n  - mlfow", "monitor.trackers[1] (line 4)", "of mlflow; got 'mlfow'; did"),
        ("monitor: {trackers: [wandb]}", "monitor.trackers[0] (line 1)", "of mlflow; got 'wandb'; install the package"),
        ("curriculum:\n  bandit: {type: discounted_thomson}", "curriculum.bandit.type (line 2)", "did you mean disc"),
        ("curriculum:\n  filters:\n  - {type: overlon}", "curriculum.filters[0].type (line 3)", "mean overlong?"),
        ("curriculum: {filters: [{most: .5}]}", "curriculum.filters[0].type (line 1)", "one of zero_variance,"),
        ("curriculum: {filters: [3]}", "curriculum.filters[0] (line 1)", "expected a mapping of keys; got 3"),
        ("curriculum: {filters: zero_variance}", "curriculum.filters (line 1)", "expected a list"),
        ("success: {threshold: .inf}", "success.threshold (line 1)", "expected a finite number; got inf"),
        ("success: {threshold: 1, range: [0, 1]}", "success (line 1)", "either threshold or range; got both"),
        ("success: {range: [1, 0]}", "success (line 1)", "a < b"),
        ("success: {range: [1]}", "success.range[1] (line 1)", "expected one more item"),
        ("success: {range: [0, 1, 2]}", "success.range (line 1)", "expected a list of 2; got 3 items"),
        ("environments: [a]", "environments (line 1)", "expected a mapping of keys"),
        ("environments: {a: {share: {floor: .5, cap: .4}}}", "environments.a.share (line 1)", "floor <= cap"),
        ("environments: {a: {levels: [3, 1]}}", "environments.a (line 1)", "low <= high"),
        ("environments: {a: {reward: m:f}}", "environments.a (line 1)", "expected a source beside reward"),
        ('environments: {"a\\tb": {}}', "mix.yaml", "named by 1 to 200 printable characters"),
        (
            "environments:\n  a: {share: {floor: 0.6}}\n  b: {share: {floor: 0.5}}",
            "environments (line 1)",
            "floors that sum to 1 or less; got 1.1",
        ),
        (
            "environments:\n  a: {source: {type: x}, share: {cap: 0.3}}\n  b: {source: {type: x}, share: {cap: 0.3}}",
            "environments (line 1)",
            "caps that sum to 1 or more; got 0.6",
        ),
        ("seed: 1\nmodel: m\nseed: 2", "seed (line 3)", "each key once"),
        ("seed: !!python/object/apply:os.system ['false']", "seed (line 1)", "got the tag"),
        ("model: !!binary aGVsbG8=", "model (line 1)", "got the tag"),
        ("trainer: &a {x: *a}", "trainer.x (line 1)", "inside itself"),
        ("trainer: *nowhere", "trainer (line 1)", "define &nowhere first"),
        ("trainer: {x: .nan}", "trainer.x (line 1)", "got .nan"),
        ("trainer: {bf16: no}", "trainer.bf16 (line 1)", "expected true or false; got no"),
        ("trainer: {x: 123456789012345678901}", "trainer.x (line 1)", "whole number of 64 bits"),
        ("trainer: {x: 1e999}", "trainer.x (line 1)", "fits in 64 bits"),
        ('model: "\\ud800"', "model (line 1)", "surrogate"),
        ("trainer: {? [a] : 1}", "trainer (line 1)", "expected a key of plain text"),
        ("seed: 1\n---\nseed: 2", "(line 2)", "expected one document"),
        ("- 1\n- 2", "mix.yaml:", "expected a mapping of keys; got [1, 2]"),
        ("seed: [", "(line 1)", "expected YAML"),
        ("seed: \x07", "(line 1)", "control character"),
        ("trainer: " + "[" * 5000, "trainer", "levels"),
        (b"seed: 1\nmodel: \xff", "(line 2)", "expected UTF-8 text"),
        (b"#" * (1 << 21), "mix.yaml:", "more than 1048576 bytes"),
        (BOMB, "", "aliases expanded"),
    ],
)  # fmt: skip
def test_one_clear_line(tmp_path: Path, text: str | bytes, place: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "mix.yaml"))
    assert place in message
    assert said in message
    assert message.isprintable()


def test_files_that_are_none(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "a directory"), (tmp_path / "no.yaml", "no such file"), ("a\0b", "no such file")):
        with pytest.raises(ConfigError, match=said):
            load_mix(path)
    with pytest.raises(ConfigError, match="not a regular file"):
        load_mix("/dev/null")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6), ("1E5", 1e5), (".5", 0.5), ("5.", 5.0), ("-1.5e+3", -1500.0), ("0x1F", 31), ("0o17", 15),
        ("017", 17), ("1_000", 1000), ("+3", 3), (".inf", math.inf), ("-.inf", -math.inf), ("~", None), ("null", None),
        ("true", True), ("False", False), ("2024-01-01", "2024-01-01"), ("1:30", "1:30"), ("e5", "e5"), ("y", "y"),
        ("'1e-6'", "1e-6"), ('"no"', "no"), ("|\n  no", "no"), ("1.2.3", "1.2.3"), ("=", "="),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    assert parse(f"x: {text}")[0] == {"x": value}


def test_anchors_and_merges(tmp_path: Path) -> None:
    mix = load(
        tmp_path,
        "environments:\n"
        "  a: &a {weight: 2.0, share: {cap: .5}}\n  b: *a\n  c: {<<: *a, weight: 3}\n  d: {weight: 1, <<: [*a]}",
    )
    assert [e.weight for e in mix.environments.values()] == [2.0, 2.0, 3.0, 1.0]
    assert {e.share.cap for e in mix.environments.values()} == {0.5}
    with pytest.raises(ConfigError, match="to merge; got 3"):
        load(tmp_path, "monitor: {<<: 3}")


def test_mappings_in_code() -> None:
    assert as_config(None) == as_config({}) == CurriculumConfig()
    mix = CurriculumConfig(seed=3)
    assert as_config(mix) is mix
    for wrong in (
        {"seed": "x"},
        {"curriculum": {"probe": 0}},
        {3: 4},
        {"environments": {3: {}}},
        {"trainer": {3: 4}},
        {"monitor": {"trackers": ["mlfow"]}},
        7,
    ):
        with pytest.raises(ConfigError, match=r"^config: .*expected"):
            as_config(wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match=r"monitor: .*windw.*\(and 2 more\)|windw.*\(and 2 more\)"):
        as_config({"monitor": {"windw": 1, "trackerz": 2}, "sed": 1})


def test_resolved_reads_back(tmp_path: Path) -> None:
    trainer = {"a": "1e5", "b": 1e-6, "c": "no", "d": "0o7", "e": ["a\nb", "", "=", "<<", "~", "1_0"], "f": math.inf}
    mix = as_config(
        {
            "environments": {"a": {"share": {"floor": 0.3}, "levels": [1, 2]}, "größer: #1": {}},
            "success": {"range": [-1, 1]},
            "monitor": {"trackers": ["mlflow"]},
            "trainer": {**trainer, "g": {"deep": [{"x": None}]}},
        }
    )
    assert load(tmp_path, resolved(mix)) == mix
    names = ["größer: #1", "b", "a"]
    text = resolved(mix, names)
    read = load(tmp_path, text)
    assert list(read.environments) == names
    assert [e.share.floor for e in read.environments.values()] == share_bounds(mix, names)[0]
    assert resolved(read, names) == text
    assert set(yaml.safe_load(resolved(CurriculumConfig()))) == set(CurriculumConfig.model_fields)
    assert "object at" in resolved(as_config({"trainer": {"x": object()}}))


def test_floors_and_caps_leave_room() -> None:
    mix = as_config({"environments": {"a": {"share": {"floor": 0.99}}, "b": {"share": {"cap": 0.001}}}})
    floors, caps = share_bounds(mix, ["a", "b", "c"])
    assert floors[0] == 0.99
    assert floors[1] == 0.001
    assert floors[2] == pytest.approx(0.005)
    assert caps == [1.0, 0.001, 1.0]
    assert share_bounds(CurriculumConfig(), [str(i) for i in range(100)])[0] == [0.005] * 100
    ten = as_config({"environments": {str(i): {"share": {"floor": 0.1, "cap": 0.1}} for i in range(10)}})
    check_shares(ten, [str(i) for i in range(10)])


def test_environments_of_the_data(tmp_path: Path) -> None:
    mix = load(tmp_path, "environments:\n  sums: {}\n  math: {share: {cap: .2}}")
    with pytest.raises(ConfigError, match=r"mix.yaml: environments.math \(line 3\): .*did you mean maths\?"):
        check_shares(mix, ["sums", "maths"])
    check_shares(mix, ["sums", "math"])
    with pytest.raises(ConfigError, match="caps that sum to 1"):
        check_shares(as_config({"environments": {"a": {"share": {"cap": 0.2}}}}), ["a"])


def test_what_only_the_launcher_reads(tmp_path: Path) -> None:
    assert launcher_keys(CurriculumConfig()) == []
    text = (
        "environments:\n  sums: {source: {type: x}, reward: m:f}\n  b: {weight: 2}\n  two words: {source: {type: x}}\n"
    )
    mix = load(tmp_path, text + "model: m\ntrainer: {max_steps: 2}\nseed: 1\nsuccess: {threshold: 1}\n")
    named = ["environments.sums.source", "environments.sums.reward", "environments.'two words'.source"]
    assert launcher_keys(mix) == ["model", "trainer", *named]
    assert launcher_keys(load(tmp_path, resolved(CurriculumConfig(), ["a"]))) == []
