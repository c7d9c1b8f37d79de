"""What TRL 1.16 knows as `loss_type`, and what of each loss a recipe or a figure depends on."""

from typing import NamedTuple


class Loss(NamedTuple):
    """Of one loss.

    Attributes:
        clips: Whether a ratio beyond its bounds takes a token's gradient away.
        cuts: Whether it bounds a token's weight, and keeps its gradient.
        row_mean: Whether it is a mean over rollouts, whatever the tokens of each that count: else one over tokens.
        prompt_mean: Whether weights of advantages make a mean over prompts of it: it is one over all tokens of the
            batch, and linear in advantages.
    """

    clips: bool = False
    cuts: bool = False
    row_mean: bool = False
    prompt_mean: bool = False


LOSSES = {
    "grpo": Loss(clips=True, row_mean=True),
    "bnpo": Loss(clips=True),
    "dr_grpo": Loss(clips=True, row_mean=True),
    "dapo": Loss(clips=True, prompt_mean=True),
    "cispo": Loss(cuts=True, prompt_mean=True),
    "sapo": Loss(row_mean=True),
    "luspo": Loss(clips=True, row_mean=True),
    "vespo": Loss(),
}


def loss_of(name: str) -> Loss:
    """What is known of a loss; nothing of one that is not TRL's.

    >>> loss_of("dapo").clips, loss_of("mine").clips
    (True, False)
    """
    return LOSSES.get(name, Loss())
