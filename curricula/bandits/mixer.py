"""Shares of the environments: a rule, what it is rewarded for, and control of what is trained."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.bandits.base import Codes, Floats
from curricula.bandits.bounds import base_mix, bounded_shares, resolve_bounds
from curricula.bandits.competition import Competition
from curricula.bandits.control import TrainedShares
from curricula.bandits.custom import asked, told
from curricula.bandits.fixed import FixedShares
from curricula.bandits.make import make_bandit, make_reward
from curricula.bandits.plan import Plan
from curricula.config import CurriculumConfig, CustomBanditConfig, LearnedConfig
from curricula.pool import PromptPool
from curricula.scored import Scored
from curricula.stateful import Reader

_PULL, _LEAST_SHARE = 0.15, 0.01


class Mixer:
    """From what groups gave to the shares of the next draws.

    Shares that do not learn are meant for what is trained on, and draws are set so that filters do not change them.
    Shares that are learned are worth per draw, keep rates included, so they are shares of the draws; control then
    holds what is trained on within the floors and caps that the mix declares. Default floors are of the draws: they
    let nobody vanish, and nothing is paid for groups that are never kept. Shares of a plan are of the draws too; what
    it is not for is the rule's.

    Args:
        pool: For the environments and their sizes.
        config: The mix.

    Attributes:
        base: Shape (E,), the mix that corrected rates refer to.
        floors, caps: Shape (E,), bounds of the shares.
        plan: What decides in the place of the rule, where the mix has it.

    Raises:
        ConfigError: Bounds that no shares can meet, quotas without weights, or a rule that cannot be made.
    """

    def __init__(self, pool: PromptPool, config: CurriculumConfig) -> None:
        names, sizes = pool.environments, pool.sizes
        self.base = base_mix(config, sizes)
        weighted = any(environment.weight is not None for environment in config.environments.values())
        self._part = self.base if weighted else np.full(len(names), 1.0 / len(names))
        self.floors, self.caps = resolve_bounds(config, names)
        shares = [config.environments[name].share if name in config.environments else None for name in names]
        declared = np.array([share is not None and share.floor is not None for share in shares])
        self._declared = np.where(declared, self.floors, 0.0)
        self.rule = make_bandit(config, self.base, np.array(list(sizes.values()), dtype=np.float64))
        chosen = config.curriculum.bandit
        self._custom = chosen.type if isinstance(chosen, CustomBanditConfig) else None
        self.reward = make_reward(chosen, self.base)
        self.control = TrainedShares(len(names), chosen.most_draws)
        planned = config.curriculum.shares
        self._names = names
        self.plan = (
            Plan(planned, self.base, self.floors, self.caps, config.seed)
            if planned.planned and len(names) > 1
            else None
        )
        self._kind = chosen.type, chosen.reward.type if isinstance(chosen, LearnedConfig) else "none"

    def describe(self, names: Sequence[str]) -> str:
        """The rule, and each environment's weight, bounds and, where it does not learn, its share; for the log."""
        fixed = self.rule.weights if isinstance(self.rule, FixedShares) else None
        entries: list[str] = []
        for code, name in enumerate(names):
            share = "" if fixed is None else f"share {fixed[code]:.3g}, "
            bounds = f"floor {self.floors[code]:.3g}, cap {self.caps[code]:.3g}"
            entries.append(f"{name} {self.base[code]:.3g} ({share}{bounds})")
        planned = "" if self.plan is None else ", shares planned by scaling curves as soon as there are points"
        return f"bandit {self._kind[0]}{planned}: {', '.join(entries)}"

    def shares(self, costs: Floats, rng: np.random.Generator) -> Floats:
        """Shares of the next draws, shape (E,), of sum 1, given the expected tokens of a rollout, shape (E,)."""
        if len(self.base) == 1:
            return np.ones(1)
        worth = self.reward.worth()
        prices = costs / worth * worth.mean()
        raw = self.rule.shares(prices, rng) if self._custom is None else asked(self.rule, self._custom, prices, rng)
        bounded = self._bounded(raw)
        if isinstance(self.rule, FixedShares) and not self.planned:
            return self.control.draws(bounded)
        return self.control.within(bounded, self._declared, self.caps)

    @property
    def compete(self) -> bool:
        """Whether environments win their shares prompt by prompt, among candidates."""
        return isinstance(self.rule, Competition) and len(self.base) > 1

    def worth(self) -> Floats:
        """What a unit of signal counts for in a competition, shape (E,), positive.

        What it may be worth at best, times (part / share of late) to the power .15, where the part is by declared
        weights, and the same for all without: of environments whose prompts are equally good, none takes all by chance.
        Sizes are no wish: most prompts of a pool may well be mastered.
        """
        return self.reward.ceiling() * (self._part / np.maximum(self.late(), _LEAST_SHARE)) ** _PULL

    def late(self) -> Floats:
        """Shares won in a competition of late (E,); the base mix before any."""
        return self.rule.won_E if isinstance(self.rule, Competition) else self.base

    def after(self, won: Floats) -> Floats:
        """Shares of the draws (E,) after those won in a competition (E,); nothing changes."""
        raw = self.rule.after(won) if isinstance(self.rule, Competition) else won
        return self.control.within(self._bounded(raw), self._declared, self.caps)

    def _bounded(self, raw: Floats) -> Floats:
        return bounded_shares(raw if self.plan is None else self.plan.mix(raw), self.floors, self.caps)

    @property
    def planned(self) -> bool:
        """Whether a plan decides, on some of the environments at least."""
        return self.plan is not None and self.plan.decides

    def tick(self) -> None:
        """Count an ask."""
        if self.plan is not None:
            self.plan.tick()

    def metrics(self) -> dict[str, float]:
        """Figures of the plan, where there is one."""
        return {} if self.plan is None else self.plan.metrics(self._names)

    def win(self, won: Floats) -> None:
        """Take the shares won in a competition (E,)."""
        if isinstance(self.rule, Competition):
            self.rule.win(won)

    def observe(self, groups: Scored, compared: NDArray[np.bool_], rated: bool) -> None:
        """Learn K groups in the order they were told.

        Args:
            groups: What they gave.
            compared: Shape (K,), those with two results or more to compare.
            rated: Whether results are success rates.
        """
        rewards = self.reward.observe(groups, rated)[compared]
        learned = groups.codes_K[compared], rewards, groups.share_K[compared]
        if self._custom is None:
            self.rule.update(*learned)
        else:
            told(self.rule, self._custom, *learned)
        seen = groups.drawn_K & (groups.members_K > 0) | compared & groups.drawn_K
        self.control.observe(groups.codes_K[seen], groups.kept_K[seen])
        if self.plan is not None:
            self.plan.observe(groups, rated, self._names)

    def lost(self, codes: Codes) -> None:
        """Count groups that came back too old to be trained on: their environments, shape (K,)."""
        self.control.observe(codes, np.zeros(len(codes), dtype=np.bool_))

    def clear(self) -> None:
        """Forget what depends on how success is measured."""
        self.reward.clear()
        if self.plan is not None:
            self.plan.clear()

    def state_dict(self) -> dict[str, Any]:
        """State of the parts, and which they are."""
        return {
            "type": self._kind[0],
            "rule": self.rule.state_dict(),
            "reward_type": self._kind[1],
            "reward": self.reward.state_dict(),
            "control": self.control.state_dict(),
            "plan": None if self.plan is None else self.plan.state_dict(),
        }

    def load(self, state: Reader) -> None:
        """Take over saved states; a part of another type than before starts afresh."""
        kind, reward = state.text("type"), state.text("reward_type")
        self.control.load(state.section("control"))
        if self.plan is not None and state.optional("plan") is not None:
            self.plan.load(state.section("plan"))
        if reward == self._kind[1]:
            self.reward.load(state.section("reward"))
        if (kind, reward) == self._kind:
            self.rule.load(state.section("rule"))
