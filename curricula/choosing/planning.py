"""From shares to prompts: how many draws each environment gets, and which prompts they fall on."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curricula.choosing.candidates import Candidates, Scout
from curricula.choosing.competing import Won, compete
from curricula.choosing.drawing import Choice, draw, repeat
from curricula.choosing.forecasting import Forecast, spread
from curricula.choosing.sampling import allocate
from curricula.choosing.scores import Scorer
from curricula.choosing.strata import expected_draws, settle, stratify
from curricula.config import SelectionConfig
from curricula.learner import Learner
from curricula.pool import PromptPool
from curricula.tickets import Tickets
from curricula.windows import Windows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_UNRIPE = 0.5
_UNSEEN_PART = 0.6


class Plan(NamedTuple):
    """What an ask draws.

    Attributes:
        choices: The draws, in random order.
        shares: Shape (E,), of the environments, that it went by.
        won: Shape (E,), the shares won in this ask's competition; None where there was none.
        least: Smallest propensity that a candidate had in the environments that were drawn from.
    """

    choices: list[Choice]
    shares: Floats
    won: Floats | None
    least: float


class Planner:
    """Chooses prompts in two phases, so that the probability of each is known exactly.

    In each environment, candidates are sampled among the visited prompts and among those never visited (`Scout`), and
    scored (`Scorer`). An environment's draws are split between the two kinds: those never visited get what their
    scores earn them beside the visited ones, and at least the part `explore` (half of it in the first pass over the
    prompts, rising as passes go on), or .6 times what part of the prompts they are, if that is less. In each kind,
    draws are made with inclusion probabilities that follow the scores softly. A fraction `probe` is spread by chance,
    so that nothing is absorbed: mastered and hopeless prompts come back, as do unvisited ones that look poor, and
    neither kind gets less than that part of what it is of the prompts.

    The propensity is the probability to be a candidate times that to be drawn as one, whichever whole number of draws
    the kind got. It is conditional on how many draws the environment got.

    Planning changes nothing: what was predicted beside the step is taken over by `scout.receive` before, and the
    candidates of the next ask are sampled by `scout.prepare` after.
    """

    def __init__(self, pool: PromptPool, config: SelectionConfig) -> None:
        self.pool, self.config = pool, config
        self.scout = Scout(pool, config)
        self.scorer = Scorer(config)

    def plan(
        self,
        count: int,
        group_size: int,
        shares: Floats,
        windows: Windows,
        tickets: Tickets,
        learner: Learner,
        drawn: int,
        rng: np.random.Generator,
    ) -> Plan:
        """Choose `count` prompts.

        Args:
            count: How many.
            group_size: Rollouts per group.
            shares: Shape (E,), of sum 1.
            windows: What is eligible.
            tickets: What is in flight.
            learner: What is believed of pass rates and costs.
            drawn: Draws made before this ask.
            rng: The only source of randomness.
        """
        candidates = self.scout.look(count, shares, windows, tickets, learner, rng)
        choices: list[Choice] = []
        won, least = None, 1.0
        if candidates.rows.size:
            means, scores = self.scorer.score(candidates.rows, group_size, learner, drawn)
            won, explored = self._compete(candidates, scores, count, learner, drawn)
            if won is not None:
                shares = learner.mixer.after(won)
            sizes_E = candidates.sizes_E2.sum(axis=1)
            counts_E = settle(allocate(shares, count, rng), sizes_E, shares, rng)
            expected_R = expected_draws(candidates, scores, counts_E, explored, self.config.probe)
            strata = stratify(candidates, scores, expected_R, self.config, rng)
            free_E = np.array([stop - start - tickets.taken(start, stop).size for start, stop in windows.spans])
            choices, least = draw(candidates, means, strata, free_E, rng)
        if (missing := count - len(choices)) > 0:
            choices += repeat(self.pool, allocate(shares, missing, rng), windows.spans, rng)
        # Hosts split a batch over ranks and micro-batches: no part of it should hold one environment only.
        return Plan([choices[place] for place in rng.permutation(count).tolist()], shares, won, least)

    def chances(
        self,
        asked: Ints,
        count: int,
        group_size: int,
        shares: Floats,
        windows: Windows,
        tickets: Tickets,
        learner: Learner,
        drawn: int,
        rng: np.random.Generator,
    ) -> Floats:
        """Probability that an ask would draw each of these rows (R,); one sample of candidates, nothing is drawn.

        A row that is no candidate of the sample takes the place of one that is; its probability is then right given
        the others. Rows that are not eligible have 0. The other arguments are those of `plan`.
        """
        candidates = self.scout.look(count, shares, windows, tickets, learner, rng)
        result = np.zeros(asked.size)
        if not candidates.rows.size:
            return result
        _, scores = self.scorer.score(candidates.rows, group_size, learner, drawn)
        won, explored = self._compete(candidates, scores, count, learner, drawn)
        if won is not None:
            shares = learner.mixer.after(won)
        sizes_E = candidates.sizes_E2.sum(axis=1)
        mean_E = spread(shares * count, sizes_E, shares)
        forecast = Forecast(candidates, scores, self.config)
        # An environment gets one of the two whole numbers of draws around its mean.
        low_E = np.floor(mean_E + 1e-9)
        for counts_E, likely_E in ((low_E, low_E + 1.0 - mean_E), (low_E + 1.0, mean_E - low_E)):
            counts_E = np.minimum(counts_E, sizes_E).astype(np.int64)
            expected_R = expected_draws(candidates, scores, counts_E, explored, self.config.probe)
            forecast.add(expected_R, np.repeat(np.maximum(likely_E, 0.0), 2))
        _, own = self.scorer.score(asked, group_size, learner, drawn)
        kinds = 2 * self.pool.codes[asked].astype(np.int64) + ~learner.beliefs.seen(asked)
        positions = self.pool.positions(asked)
        for kind in sorted({int(kind) for kind in kinds}):
            start, stop = windows.spans[kind // 2]
            free = (positions >= start) & (positions < stop) & ~np.isin(positions, tickets.taken(start, stop))
            places = np.flatnonzero((kinds == kind) & free)
            result[places] = forecast.chances(kind, positions[places], own[places])
        return result

    def _compete(
        self, candidates: Candidates, scores: Floats, count: int, learner: Learner, drawn: int
    ) -> tuple[Floats | None, Floats | None]:
        """Shares (E,) that were won, where they are; and the part (E,) of draws for prompts never visited, at least.

        The second is None where all prompts count alike: what was never visited then gets its part of the prompts.
        """
        if self.scorer.alike(drawn):
            return None, None
        # The oftener the prompts were passed over, the longer a run is likely to go on, and knowledge to pay.
        ripe = max(_UNRIPE, 1.0 - float(np.exp(-drawn / len(self.pool))))
        explore_E = np.minimum(self.config.explore * ripe, _UNSEEN_PART * candidates.unseen_E)
        if not learner.mixer.compete:
            return None, explore_E
        won: Won = compete(candidates, scores, learner.mixer.worth(), count, explore_E, learner.mixer.late())
        return won.shares, won.explored
