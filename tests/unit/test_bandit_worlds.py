"""Shares of the environments in simulated worlds: what learns is found, and young environments are not starved."""

import sys
import textwrap

import numpy as np
import pytest

from curricula import ConfigError, Curriculum, CurriculumConfig, GroupOutcome, PromptPool
from curricula.config import as_config, resolved
from curricula.config.parse import parse
from curricula.simulation import CurriculumRule, EnvironmentLaw, Law, Prerequisite, World, simulate

NOISE = Law(
    environments=(
        EnvironmentLaw("noise", 800, ((1.0, 0.0, 0.3),), rate=0.0),  # half of its rollouts pass, whatever is trained
        EnvironmentLaw("learns", 800, ((1.0, 1.0, 1.2),), rate=0.3),
        EnvironmentLaw("hopeless", 800, ((1.0, 9.0, 0.5),), rate=0.3),
    )
)
YOUNG = Law(
    environments=(
        EnvironmentLaw("first", 800, ((1.0, 0.0, 1.0),), rate=0.8),
        EnvironmentLaw("later", 800, ((1.0, 3.0, 1.0),), rate=0.8),  # learned once the first one is
    ),
    prerequisites=(Prerequisite(1, 0, 1.5, 4.0),),
)


def curve(law, bandit, steps=120, seed=0):
    mix = {"curriculum": {"bandit": bandit, "objective": {"type": "signal"}, "predictor": {"type": "none"}}}
    world = World(law, seed)
    return simulate(world, CurriculumRule(world.pool(texts=False), 8, mix, seed), steps, 32, 8, seed)


@pytest.mark.parametrize("rule", ["discounted_thompson", "exp3s", "sliding_window_ucb"])
def test_learning_progress_goes_where_something_is_learned_and_informative_groups_to_the_noise(rule):
    share = {}
    for reward in ("learning_progress", "informative"):
        drawn = curve(NOISE, {"type": rule, "reward": reward}).drawn_TE[-40:].sum(axis=0)
        share[reward] = drawn / drawn.sum()
    assert share["learning_progress"][1] > 0.55
    assert share["learning_progress"][1] > 1.5 * share["informative"][1]
    assert share["informative"][0] > share["learning_progress"][0]
    # The default floor; draws are whole numbers.
    assert (share["learning_progress"] > 0.02 - 0.005).all()


def test_more_is_learned_than_by_even_shares():
    for law in (NOISE, YOUNG):
        learned = [curve(law, {}, seed=seed).final for seed in range(3)]
        even = [curve(law, {"type": "equal", "most_draws": 1.0}, seed=seed).final for seed in range(3)]
        assert np.mean(learned) > np.mean(even)


def test_an_environment_that_starts_to_learn_late_gets_its_turn():
    drawn = curve(YOUNG, {}, steps=160).drawn_TE
    assert drawn[:20, 1].mean() >= 0.04 * 32
    assert drawn[-40:, 1].mean() > 0.5 * 32


def teach(curriculum, groups=20):
    rng = np.random.default_rng(0)
    for _ in range(groups):
        draws = curriculum.ask(6, group_size=4)
        curriculum.tell([GroupOutcome(draw.ticket, rng.integers(0, 2, 4)) for draw in draws])


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_bandits.py").write_text(
        textwrap.dedent(
            """
            from curricula.bandits import DiscountedThompson

            class Mine(DiscountedThompson):
                def __init__(self, arms, patience=0.99):
                    super().__init__(arms, patience)

            class Half:
                def shares(self, costs, rng): ...
            """
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_bandits", None)


def test_a_bandit_of_ones_own_is_named_by_its_import_path(own):
    mix = {"curriculum": {"bandit": {"type": "own_bandits:Mine", "params": {"patience": 0.9}}}}
    curriculum = Curriculum(PromptPool(["a", "b"] * 50), mix)
    assert type(curriculum._learner.mixer.rule).__name__ == "Mine"
    assert curriculum._learner.mixer.rule.discount == 0.9
    teach(curriculum)
    resumed = Curriculum(PromptPool(["a", "b"] * 50), mix)
    resumed.load_state_dict(curriculum.state_dict())
    assert resumed.ask(5, group_size=4) == curriculum.ask(5, group_size=4)


@pytest.mark.parametrize(
    ("bandit", "message"),
    [
        ({"type": "own_bandits:None_"}, r"curriculum\.bandit\.type: expected module:Class that can be imported"),
        ({"type": "no_such_module:X"}, r"curriculum\.bandit\.type: expected module:Class that can be imported"),
        ({"type": "own_bandits:Half"}, "expected a class with shares, update.*without update, state_dict, load"),
        ({"type": "own_bandits:Mine", "params": {"x": 1}}, r"curriculum\.bandit\.params: expected params that"),
        ({"type": "own bandits:Mine"}, r"curriculum\.bandit\.type: expected module:Class; got"),
        ({"type": "own_bandits:Mine", "parms": {}}, r"curriculum\.bandit\.parms: .* did you mean params"),
        ({"type": "exp3s", "window": 9}, r"curriculum\.bandit\.window: expected a known key; got 'window'"),
        ({"type": "equal", "reward": "informative"}, r"curriculum\.bandit\.reward: expected a known key"),
        ({"reward": {"type": "informative", "memory": 9}}, r"curriculum\.bandit\.reward\.memory: expected a known"),
        (
            {"reward": "mean_advantage"},
            r"curriculum\.bandit\.reward: expected learning_progress or informative .* got mean",
        ),
        ({"reward": "informativ"}, r"curriculum\.bandit\.reward\.type: .* did you mean informative"),
        ({"type": "exp3"}, r"curriculum\.bandit\.type: .* did you mean exp3s"),
        ({"most_draws": 0.5}, r"curriculum\.bandit\.most_draws: expected a number >= 1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(own, bandit, message):
    with pytest.raises(ConfigError, match=message) as error:
        Curriculum(PromptPool(["a", "b"]), {"curriculum": {"bandit": bandit}})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "bandit",
    [
        "exp3s",
        {"type": "sliding_window_ucb", "window": 50},
        {"type": "quotas", "most_draws": 2.0},
        {"type": "exp3s", "reward": "mean_advantage"},
        {"reward": {"type": "learning_progress", "memory": 50}, "discount": 0.9},
        {"type": "module_of_mine:Class", "params": {"a": [1, 2]}},
    ],
)
def test_resolved_mixes_read_back_the_same(bandit):
    mix = as_config({"curriculum": {"bandit": bandit}})
    assert CurriculumConfig.model_validate(parse(resolved(mix))[0]) == mix


@pytest.mark.parametrize(
    "bandit", ["exp3s", "sliding_window_ucb", {"type": "exp3s", "reward": "mean_advantage"}, "equal"]
)
def test_every_rule_resumes_exactly(bandit):
    mix = {"curriculum": {"bandit": bandit}}
    curriculum, resumed = (Curriculum(PromptPool(["a", "b", "c"] * 60), mix) for _ in range(2))
    teach(curriculum)
    resumed.load_state_dict(curriculum.state_dict())
    for one in (curriculum, resumed):
        teach(one, 3)
    assert resumed.shares() == curriculum.shares()


def test_fixed_shares_are_said_at_the_start(caplog):
    caplog.set_level("INFO", "curricula")
    mix = {"curriculum": {"bandit": "quotas"}, "environments": {"a": {"weight": 3}, "b": {"weight": 1}}}
    Curriculum(PromptPool(["a"] * 10 + ["b"] * 30), mix)
    assert caplog.records[0].getMessage() == (
        "base mix of 40 prompts, bandit quotas: "
        "a 0.75 (share 0.75, floor 0, cap 1), b 0.25 (share 0.25, floor 0, cap 1)"
    )
