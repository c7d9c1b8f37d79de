"""Weights of groups: the batch-level normaliser, and a mean over prompts.

TRL's policy losses are linear in positive scalings of a group's advantages, so a weight of a group is a factor of its
advantages. That holds for no penalty and no bonus that advantages do not multiply.
"""

import torch

from curricula_trl.recipes.finish.groups import Groups


def batch_deviation(groups: Groups) -> torch.Tensor:
    """Standard deviation of the centred advantages of the groups that are trained on, over the batch; a scalar.

    Rollouts without a reward, or without a token in the loss, do not count. 1 where no group is trained on.

    Source: ScaleRL, arXiv 2510.13786, section 3.2 ("batch-level normalisation").
    """
    live = groups.advantages[groups.trained][groups.tokens[groups.trained] > 0]
    live = live[~live.isnan()]
    return live.square().mean().sqrt() if live.numel() else torch.ones((), dtype=torch.float64)


def prompt_weights(groups: Groups, counted: torch.Tensor) -> torch.Tensor:
    """Factors that turn a mean over tokens into a mean over prompts of means over their tokens, shape (N,).

    With T tokens in N groups, and T_g in one, the weights are w_g = T / (N T_g), since then
    1/T sum_t w_g l_t = 1/N sum_g 1/T_g sum_{t in g} l_t.

    Args:
        groups: The batch.
        counted: Shape (N,), groups whose tokens the loss counts.

    Source: ScaleRL, arXiv 2510.13786, section 3.2 ("prompt-level average").
    """
    tokens = groups.tokens.sum(dim=1)
    counted = counted & (tokens > 0)
    factors = torch.ones_like(tokens)
    if counted.any():
        factors[counted] = tokens[counted].sum() / (counted.sum() * tokens[counted])
    return factors


def row_mean_weight(groups: Groups) -> float:
    """By what a mean over all rollouts is too small where only those of groups that are trained on count."""
    trained = int(groups.trained.sum())
    return groups.trained.numel() / trained if trained else 1.0
