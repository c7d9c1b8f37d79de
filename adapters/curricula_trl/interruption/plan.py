"""At which length each rollout is interrupted."""

import numpy as np


class Plan:
    """Draws limits of thinking, evenly between two lengths, for every rollout of a round.

    They depend on the seed, the version of the policy, the round (of those for one version) and the rollout's place in
    the whole batch: so they are the same however many ranks share it, and after a resume.

    Args:
        seed: Of the mix.
        at: Least and most tokens of thinking.
    """

    def __init__(self, seed: int, at: tuple[int, int]) -> None:
        self._seed, self._at = seed, at
        self._version, self._rounds = -1, 0

    def limits(self, version: int, total: int) -> list[int]:
        """The limits of a round of `total` rollouts, in global order; each call is for the next round.

        >>> Plan(7, (3, 9)).limits(0, 6), Plan(7, (3, 9)).limits(0, 3)
        ([7, 9, 8, 4, 5, 9], [7, 9, 8])
        """
        if version != self._version:
            self._version, self._rounds = version, 0
        generator = np.random.default_rng([self._seed, version, self._rounds])
        self._rounds += 1
        least, most = self._at
        # One number for each row, whatever comes after it.
        return (least + np.floor(generator.random(total) * (most - least + 1)).astype(np.int64)).tolist()
