"""Cases of tests/INPUTS.md: the mix in YAML."""

from pathlib import Path

from curricula.config import CurriculumConfig, as_config, check_shares, load_mix

TEXTS = {
    "mix-unknown-key": "curiculum: {}",
    "mix-wrong-type": "curriculum: {probe: lots}",
    "mix-quoted-number": "success: {threshold: '1e-6'}",
    "mix-not-a-number": "curriculum: {probe: .nan}",
    "mix-out-of-range": "curriculum: {probe: 20}",
    "mix-old-boolean": "trainer: {bf16: no}",
    "mix-unknown-choice": "curriculum: {bandit: {type: thompson}}",
    "mix-bandit-key": "curriculum: {bandit: {type: exp3s, window: 9}}",
    "mix-unknown-shares": "curriculum: {shares: {from: scalling}}",
    "mix-horizon": "curriculum: {shares: {from: scaling, horizon: 0}}",
    "mix-shares-unread": "curriculum: {shares: {horizon: 2}}",
    "mix-unknown-filter": "curriculum: {filters: [{type: overlon}]}",
    "mix-filter-percent": "curriculum: {filters: [{type: pass_rate_cap, above: 90}]}",
    "mix-filter-shut-out": "curriculum: {filters: [{type: pass_rate_cap, review: 0}]}",
    "mix-unknown-predictor": "curriculum: {predictor: {type: hashed_txt}}",
    "mix-empty-stack": "curriculum: {predictor: {type: stack}}",
    "mix-auto-params": "curriculum: {predictor: {params: {memory: 9}}}",
    "mix-unknown-belief": "curriculum: {belief: arcsin_kalman}",
    "mix-belief-key": "curriculum: {belief: {decay: 0.9}}",
    "mix-no-noise": "curriculum: {belief: {noise: 0}}",
    "mix-explore-percent": "curriculum: {explore: 25}",
    "mix-no-temperature": "curriculum: {temperature: 0}",
    "mix-schedule-percent": "curriculum: {schedule: {first: 90}}",
    "mix-schedule-fraction": "curriculum: {schedule: {warm_up: 0.5}}",
    "mix-unknown-tracker": "monitor: {trackers: [mlfow]}",
    "mix-floors": "environments: {a: {share: {floor: 0.6}}, b: {share: {floor: 0.6}}}",
    "mix-floor-above-cap": "environments: {a: {share: {floor: 0.6, cap: 0.5}}}",
    "mix-two-success-rules": "success: {threshold: 1, range: [0, 1]}",
    "mix-levels-reversed": "environments: {a: {levels: [3, 1]}}",
    "mix-duplicate-key": "seed: 1\nseed: 2",
    "mix-tag": "trainer: !!python/object/apply:os.system [ls]",
    "mix-cycle": "trainer: &x [*x]",
    "mix-bomb": "trainer:\n  a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    + "".join(f"  {b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "mix-list": "- 1",
    "mix-not-yaml": "a: [",
}


def load(folder: Path, text: str | bytes) -> CurriculumConfig:
    path = folder / "mix.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_mix(path)


def empty(folder: Path) -> None:
    assert load(folder, "") == CurriculumConfig()


def blank_key(folder: Path) -> None:
    assert load(folder, "seed:\ncurriculum:\n  probe:\n") == CurriculumConfig()


def small_number(folder: Path) -> None:
    mix = load(folder, "success: {threshold: 1e-6}\ntrainer: {learning_rate: 5e-5}")
    assert mix.success.threshold == 1e-6
    assert mix.trainer == {"learning_rate": 5e-5}


def anchors(folder: Path) -> None:
    mix = load(folder, "environments:\n  a: &same {weight: 2.0}\n  b: *same\n")
    assert mix.environments["b"].weight == 2.0


def any_script(folder: Path) -> None:
    assert list(load(folder, "environments: {数学: {}, 'größer / kleiner': {}}").environments) == [
        "数学",
        "größer / kleiner",
    ]


def caps(folder: Path) -> None:
    mix = as_config({"environments": {name: {"share": {"cap": 0.25}} for name in "ab"}})
    check_shares(mix, ["a", "b"])


CASES = {
    "mix-empty": empty,
    "mix-blank-key": blank_key,
    "mix-small-number": small_number,
    "mix-anchors": anchors,
    "mix-unicode": any_script,
    "mix-caps": caps,
    "mix-not-utf8": lambda folder: load(folder, "seed: 1 # é".encode("latin-1")),
    "mix-missing": lambda folder: load_mix(folder / "none.yaml"),
    "mix-folder": load_mix,
    **{name: (lambda folder, text=text: load(folder, text)) for name, text in TEXTS.items()},
}
