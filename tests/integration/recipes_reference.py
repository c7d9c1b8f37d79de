"""The losses of the papers, written out rollout by rollout in 64 bits: what presets and parts are compared with."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

Tensor = torch.Tensor


@dataclass
class Rollout:
    """One rollout: log-probabilities of its tokens now (T,), as sampled (T,), and what it earned; NaN for nothing."""

    now: Tensor
    sampled: Tensor
    reward: float


Group = Sequence[Rollout]


def rewards_of(group: Group) -> list[float]:
    return [rollout.reward for rollout in group if not math.isnan(rollout.reward)]


def mean_reward(group: Group) -> float:
    known = rewards_of(group)
    return sum(known) / len(known)


def informative(group: Group) -> bool:
    known = rewards_of(group)
    return len(known) > 1 and max(known) - min(known) > 1e-6


def by_group_deviation(group: Group) -> list[float]:
    """(r - mean) / (std + 1e-4) within the group, std as TRL has it (n - 1)."""
    known, mean = rewards_of(group), mean_reward(group)
    std = math.sqrt(sum((reward - mean) ** 2 for reward in known) / (len(known) - 1))
    return [0.0 if math.isnan(one.reward) else (one.reward - mean) / (std + 1e-4) for one in group]


def by_batch_deviation(groups: Sequence[Group]) -> list[list[float]]:
    """(r - mean of the group) / std of these differences over the batch."""
    centred = [
        [math.nan if math.isnan(one.reward) else one.reward - mean_reward(group) for one in group] for group in groups
    ]
    known = [value for row in centred for value in row if not math.isnan(value)]
    std = math.sqrt(sum(value**2 for value in known) / len(known))
    return [[0.0 if math.isnan(value) else value / std for value in row] for row in centred]


def cispo_terms(rollout: Rollout, advantage: float, most: float) -> Tensor:
    """sg(min(rho, eps)) A log pi, of each token."""
    ratio = torch.exp(rollout.now.detach() - rollout.sampled)
    return ratio.clamp(max=most) * advantage * rollout.now


def clipped_terms(ratio: Tensor, advantage: float, low: float, high: float) -> Tensor:
    return torch.minimum(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)


def scalerl(groups: Sequence[Group], most: float = 5.0) -> Tensor:
    """arXiv 2510.13786: CISPO against the generator; every prompt that has variance weighs alike."""
    trained = [group for group in groups if informative(group)]
    total = torch.zeros((), dtype=torch.float64)
    for group, advantages in zip(trained, by_batch_deviation(trained), strict=True):
        tokens = sum(len(rollout.now) for rollout in group)
        terms = [cispo_terms(one, a, most).sum() for one, a in zip(group, advantages, strict=True)]
        total = total + torch.stack(terms).sum() / tokens
    return -total / len(trained)


def token_mean(groups: Sequence[Group], terms: Callable[[Rollout, float], Tensor], masked: bool) -> Tensor:
    """DAPO's aggregation: all tokens weigh alike; `masked`: those of groups without variance are not counted."""
    counted = [group for group in groups if informative(group)] if masked else groups
    tokens = sum(len(rollout.now) for group in counted for rollout in group)
    sums = [terms(one, a).sum() for group in counted for one, a in zip(group, _advantages(group), strict=True)]
    return -torch.stack(sums).sum() / tokens


def rollout_mean(groups: Sequence[Group], terms: Callable[[Rollout, float], Tensor], masked: bool) -> Tensor:
    """GRPO's aggregation: all rollouts weigh alike."""
    counted = [group for group in groups if informative(group)] if masked else groups
    means = [terms(one, a).mean() for group in counted for one, a in zip(group, _advantages(group), strict=True)]
    return -torch.stack(means).mean()


def _advantages(group: Group) -> list[float]:
    return by_group_deviation(group) if informative(group) else [0.0] * len(group)


def ratio_terms(low: float, high: float) -> Callable[[Rollout, float], Tensor]:
    """The clipped surrogate, of each token's own ratio."""
    return lambda one, a: clipped_terms(torch.exp(one.now - one.sampled), a, low, high)


def sequence_terms(low: float, high: float) -> Callable[[Rollout, float], Tensor]:
    """GSPO, arXiv 2507.18071: the geometric mean of the ratios of all tokens, for each of them."""
    return lambda one, a: clipped_terms(torch.exp((one.now - one.sampled).mean()).expand(len(one.now)), a, low, high)
