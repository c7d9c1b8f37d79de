"""Replays of logs whose worlds are known: pass rates stand still, so that a fresh run is the truth to compare with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curricula import CurriculaValueError, Curriculum, GroupOutcome, PromptPool, open_log
from curricula.cli.replay import _lines
from curricula.config import as_config
from curricula.log.counterfactual import _Walk, replay
from curricula.log.estimate import estimate
from curricula.log.reader import read_history
from curricula.log.shadow import Shadow

SIZES = {"mixed": 300, "hard": 300}
UNIFORM = {"curriculum": {"objective": {"type": "uniform"}, "bandit": {"type": "size_proportional"}}}
MILD = {"curriculum": {"temperature": 0.5, "probe": 0.3}}


def rates() -> np.ndarray:
    rng = np.random.default_rng(7)
    return np.concatenate([rng.beta(0.6, 0.6, 300), rng.beta(0.2, 2.0, 300)])


def simulate(config: Any, asks: int, seed: int, folder: Path | None = None) -> dict[str, np.ndarray]:
    """Runs a mix on the world; by environment: fraction of informative groups, mean success, tokens of a group."""
    names = [name for name, size in SIZES.items() for _ in range(size)]
    made, rng, p = Curriculum(PromptPool(names), config, seed=seed), np.random.default_rng([seed, 5]), rates()
    log = None if folder is None else open_log(made, folder)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in SIZES}
    for _ in range(asks):
        draws = made.ask(16, group_size=8)
        rewards = [(rng.random(8) < p[draw.index]) * 1.0 for draw in draws]
        tokens = [np.full(8, 10.0 + draw.index % 7) for draw in draws]
        made.tell([GroupOutcome(d.ticket, r, tokens=t) for d, r, t in zip(draws, rewards, tokens, strict=True)])
        for draw, r, t in zip(draws, rewards, tokens, strict=True):
            found[draw.environment].append((float(r.std() > 0), r.mean(), t.sum()))
    if log is not None:
        log.close()
    return {name: np.mean(values, axis=0) for name, values in found.items() if values}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "log"
    simulate(MILD, 250, 1, path)
    return path


def test_the_same_mix_has_weights_near_one_and_the_logged_figures(folder: Path) -> None:
    found = replay(folder, as_config(MILD))
    assert (found.asks, found.repeats, found.rates, found.whole.logged.draws) == (250, 0, True, 4000)
    whole = found.whole
    assert whole.other.mean_weight == pytest.approx(1.0, abs=0.05)
    assert whole.other.effective > 0.5 * 4000
    assert abs(whole.other.informative - whole.logged.informative) < 3 * whole.other.informative_error
    assert abs(whole.other.success - whole.logged.success) < 3 * whole.other.success_error
    assert whole.unsupported == 0
    for side in found.environments.values():
        assert side.share == pytest.approx(side.logged_share, abs=0.06)


def test_another_mix_is_estimated_as_a_fresh_run_of_it_finds(folder: Path) -> None:
    found, fresh = replay(folder, as_config(UNIFORM)), simulate(UNIFORM, 300, 11)
    assert found.whole.share == 1.0
    for name, side in found.environments.items():
        informative, success, tokens = fresh[name]
        assert 100 < side.other.effective < side.other.draws
        assert side.logged.informative > informative + 0.05, "the two must differ for this to be a test"
        error = np.sqrt(informative * (1 - informative) / (300 * 16 * side.share))
        assert abs(side.other.informative - informative) < 3 * np.hypot(side.other.informative_error, error)
        assert abs(side.other.success - success) < 3 * np.hypot(side.other.success_error, error)
        assert side.other.tokens == pytest.approx(tokens / informative, rel=0.2)


def test_uniform_draws_tell_what_a_curriculum_would_bring(tmp_path: Path) -> None:
    simulate(UNIFORM, 250, 3, tmp_path / "log")
    found = replay(tmp_path / "log", as_config(MILD)).whole
    # Told what uniform draws brought, it knows other prompts than it would have known: the estimate is of that.
    assert found.other.informative > found.logged.informative + 0.1
    assert found.other.mean_weight == pytest.approx(1.0, abs=0.15)


def test_an_estimate_below_an_effective_hundred_is_refused(tmp_path: Path) -> None:
    simulate({"curriculum": {"temperature": 0.02}}, 6, 1, tmp_path / "log")
    found = replay(tmp_path / "log", as_config(UNIFORM))
    assert found.whole.other.effective < 100
    assert found.whole.other.informative is found.whole.other.success is found.whole.other.tokens is None
    assert found.whole.share == 1.0
    assert sum(side.share for side in found.environments.values()) == pytest.approx(1.0)


def test_what_the_log_never_drew_is_unsupported(tmp_path: Path) -> None:
    only = {"environments": {"hard": {"share": {"cap": 1e-9, "floor": 0.0}}}, **UNIFORM}
    simulate(only, 20, 1, tmp_path / "log")
    found = replay(tmp_path / "log", as_config(UNIFORM))
    assert found.whole.unsupported == pytest.approx(0.5, abs=0.02)
    assert found.environments["hard"].unsupported == 1.0
    assert found.environments["hard"].other.draws == 0
    assert found.environments["mixed"].unsupported == 0.0
    assert 0 < found.environments["mixed"].unseen < 1


def test_levels_windows_and_resumed_runs(tmp_path: Path) -> None:
    config = {"environments": {"a": {"levels": [0, 1]}}}

    def make() -> Curriculum:
        pool = PromptPool(["a"] * 60, levels=[row % 3 for row in range(60)])
        return Curriculum(pool, config, seed=2)

    def step(made: Curriculum) -> None:
        draws = made.ask(4, group_size=4)
        made.cancel([draws[0].ticket])
        made.tell([GroupOutcome(draw.ticket, [0, 1, 1, 0]) for draw in draws[1:]])
        made.tell([GroupOutcome(draws[0].ticket, [0, 1, 1, 0]), GroupOutcome(None, [1, 1], index=59)])

    first = make()
    open_log(first, tmp_path)
    step(first)
    first.ask(1, group_size=4)
    state = first.state_dict()
    step(first)
    second = make()
    log = open_log(second, tmp_path)
    second.load_state_dict(state)
    step(second)
    log.close()
    found = replay(tmp_path, as_config(config))
    assert (found.asks, found.whole.logged.draws) == (3, 6)
    assert found.whole.unsupported == 0.0
    assert replay(tmp_path, as_config({})).whole.unsupported > 0.1


def test_a_log_without_draws_is_refused(tmp_path: Path) -> None:
    made = Curriculum(PromptPool(["a"]), seed=0)
    log = open_log(made, tmp_path / "log")
    with pytest.raises(CurriculaValueError, match="got one without any"):
        replay(tmp_path / "log", as_config({}))
    made.tell([GroupOutcome(None, [0.0, 1.0], index=0)])
    log.close()
    with pytest.raises(CurriculaValueError, match="got one without any"):
        replay(tmp_path / "log", as_config({}))


def test_the_ratio_estimator_and_its_error() -> None:
    rng = np.random.default_rng(0)
    errors, stated = [], []
    for _ in range(400):
        x = rng.random(2000)  # drawn evenly, wanted with density 2 x
        made = estimate(2 * x, (x > 0.5) * 1.0, x, np.where(x > 0.9, np.nan, 3.0))
        errors.append([made.informative - 0.75, made.success - 2 / 3])
        stated.append([made.informative_error, made.success_error])
    assert np.abs(np.mean(errors, axis=0)).max() < 0.003
    assert np.std(errors, axis=0) == pytest.approx(np.mean(stated, axis=0), rel=0.12)
    assert made.effective == pytest.approx(1500, rel=0.05)
    assert estimate(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)).draws == 0


def leaves(state: Any, place: str = "") -> dict[str, Any]:
    if not isinstance(state, dict):
        return {place: state}
    return {key: value for name, part in state.items() for key, value in leaves(part, f"{place}.{name}").items()}


@pytest.mark.parametrize("bandit", ["competition", "exp3s", "equal"])
def test_a_shadow_of_the_same_mix_becomes_what_the_run_became(tmp_path: Path, bandit: str) -> None:
    """Where all prompts are candidates nothing depends on the generator but the draws, and those are the log's."""
    config = {"curriculum": {"bandit": bandit, "expiry": 3, "candidates": 1000, **MILD["curriculum"]}}
    made, rng = Curriculum(PromptPool(["a"] * 24 + ["b"] * 16), config, seed=3), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    for step in range(30):
        draws = made.ask(6, group_size=4)
        rewards = [(rng.random(4) < 0.3 + 0.02 * (draw.index % 24)) * 1.0 for draw in draws]
        if step % 5 == 4:
            made.cancel([draws[0].ticket])
        told = slice(1, 5) if step % 3 == 0 else slice(1, None)
        pairs = zip(draws[told], rewards[told], strict=True)
        made.tell([GroupOutcome(d.ticket, r, tokens=np.full(4, 9.0)) for d, r in pairs])
    log.close()
    run, table = read_history(tmp_path)
    shadow = Shadow(run, table.to_pylist(), as_config(config))
    walk = _Walk(shadow, table.to_pylist())
    walk.go()
    own, other = leaves(made.state_dict()["learner"]), leaves(shadow.state_dict()["learner"])
    assert own.keys() == other.keys()
    for place, value in own.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(other[place], value, rtol=1e-5, atol=1e-7, err_msg=place)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(other[place], value, err_msg=place)
        else:
            assert other[place] == value, place
    shadow.begin()
    before = repr(shadow.state_dict())
    shadow.foresee([0, 1, 2], 6, 4)
    assert repr(shadow.state_dict()) == before


def test_a_shadow_weighs_its_draws_as_the_run_did(tmp_path: Path) -> None:
    """Repeats too: there are more draws than prompts that are not in flight."""
    config = {"curriculum": {"candidates": 1000, "expiry": 5, **MILD["curriculum"]}}
    made, rng = Curriculum(PromptPool(["a"] * 8 + ["b"] * 6), config, seed=3), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    weights: list[float] = []
    repeats = 0
    for _ in range(12):
        draws = made.ask(9, group_size=4)
        weights += [made._tickets.find(draw.ticket).weight for draw in draws]
        repeats += sum(draw.reason == "repeat" for draw in draws)
        made.tell([GroupOutcome(draw.ticket, rng.integers(0, 2, 4) * 1.0) for draw in draws[:4]])
    log.close()
    run, table = read_history(tmp_path)
    rows = table.to_pylist()
    shadow, found = Shadow(run, rows, as_config(config)), []
    adopt = shadow.adopt
    shadow.adopt = lambda *given: [found.append(shadow._tickets.find(n).weight) or n for n in adopt(*given)]  # type: ignore
    _Walk(shadow, rows).go()
    assert repeats > 5
    np.testing.assert_allclose(found, weights, rtol=1e-6)


NOTE = "the log holds no texts or features: the predictor is left out"


@pytest.mark.parametrize(
    "predictor",
    [
        {"type": "hashed_text"},
        {"type": "features"},
        {"type": "frozen_encoder", "params": {"model": "none/such"}},
        {"type": "policy_head"},
        {"type": "stack", "members": [{"type": "hashed_text"}, {"type": "auto"}]},
    ],
)
def test_a_predictor_is_left_out_and_said_to_be(tmp_path: Path, predictor: dict[str, Any]) -> None:
    simulate(MILD, 20, 1, tmp_path / "log")
    plain = replay(tmp_path / "log", as_config(MILD))
    found = replay(tmp_path / "log", as_config({"curriculum": {**MILD["curriculum"], "predictor": predictor}}))
    assert (plain.notes, found.notes) == ((), (NOTE,))
    assert (found.asks, found.whole) == (plain.asks, plain.whole)
    assert _lines(found)[1] == f"note: {NOTE}"
    assert not any("note" in line for line in _lines(plain))
