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
from curricula.choosing.situation import Situation
from curricula.choosing.strata import expected_draws, settle, stratify
from curricula.config import SelectionConfig
from curricula.pool import PromptPool

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Of `explore`, in the first pass: in simulated worlds, where a run is about one pass, more cost 5 to 10% of the gain.
_UNRIPE = 0.5
# Of the unvisited part: it lets the last prompts wait, and covers 90% of a pool in five passes over it.
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


class Field(NamedTuple):
    """Who competes for the draws of an ask.

    Attributes:
        candidates: M of them.
        means: Shape (M,), expected pass rates.
        scores: Shape (M,), what each is worth.
        shares: Shape (E,), of the environments.
        won: Shape (E,), shares that were won, where there was a competition.
        explored: Shape (E,), least part of the draws for prompts never visited; None where all count alike.
    """

    candidates: Candidates
    means: Floats
    scores: Floats
    shares: Floats
    won: Floats | None
    explored: Floats | None


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

    def plan(self, now: Situation, rng: np.random.Generator) -> Plan:
        """Choose the prompts of an ask."""
        field = self._field(now, rng)
        candidates, shares = field.candidates, field.shares
        choices: list[Choice] = []
        least = 1.0
        if candidates.rows.size:
            sizes_E = candidates.sizes_E2.sum(axis=1)
            counts_E = settle(allocate(shares, now.count, rng), sizes_E, shares, rng)
            expected_R = expected_draws(candidates, field.scores, counts_E, field.explored, self.config.probe)
            strata = stratify(candidates, field.scores, expected_R, self.config, rng)
            spans, taken = now.windows.spans, now.tickets.taken
            free_E = np.array([stop - start - taken(start, stop).size for start, stop in spans])
            choices, least = draw(candidates, field.means, strata, free_E, rng)
        if (missing := now.count - len(choices)) > 0:
            choices += repeat(self.pool, allocate(shares, missing, rng), now.windows.spans, rng)
        # Hosts split a batch over ranks and micro-batches: no part of it should hold one environment only.
        return Plan([choices[place] for place in rng.permutation(now.count).tolist()], shares, field.won, least)

    def chances(self, asked: Ints, now: Situation, rng: np.random.Generator) -> Floats:
        """Probability that an ask would draw each of these rows (R,); one sample of candidates, nothing is drawn.

        A row that is no candidate of the sample takes the place of one that is; its probability is then right given
        the others. Rows that are not eligible have 0.
        """
        field = self._field(now, rng)
        candidates, scores = field.candidates, field.scores
        result = np.zeros(asked.size)
        if not candidates.rows.size:
            return result
        sizes_E = candidates.sizes_E2.sum(axis=1)
        mean_E = spread(field.shares * now.count, sizes_E, field.shares)
        forecast = Forecast(candidates, scores, self.config)
        # An environment gets one of the two whole numbers of draws around its mean.
        low_E = np.floor(mean_E + 1e-9)
        for counts_E, likely_E in ((low_E, low_E + 1.0 - mean_E), (low_E + 1.0, mean_E - low_E)):
            counts_E = np.minimum(counts_E, sizes_E).astype(np.int64)
            expected_R = expected_draws(candidates, scores, counts_E, field.explored, self.config.probe)
            forecast.add(expected_R, np.repeat(np.maximum(likely_E, 0.0), 2))
        _, own = self.scorer.score(asked, now)
        kinds = 2 * self.pool.codes[asked].astype(np.int64) + ~now.learner.beliefs.seen(asked)
        positions = self.pool.positions(asked)
        for kind in sorted({int(kind) for kind in kinds}):
            start, stop = now.windows.spans[kind // 2]
            free = (positions >= start) & (positions < stop) & ~np.isin(positions, now.tickets.taken(start, stop))
            places = np.flatnonzero((kinds == kind) & free)
            result[places] = forecast.chances(kind, positions[places], own[places])
        return result

    def _field(self, now: Situation, rng: np.random.Generator) -> "Field":
        """Candidates with their scores, and the shares that the environments have by them."""
        candidates = self.scout.look(now, rng)
        if not candidates.rows.size:
            return Field(candidates, np.zeros(0), np.zeros(0), now.shares, None, None)
        means, scores = self.scorer.score(candidates.rows, now)
        won, explored = self._compete(candidates, scores, now)
        shares = now.shares if won is None else now.learner.mixer.after(won)
        return Field(candidates, means, scores, shares, won, explored)

    def _compete(self, candidates: Candidates, scores: Floats, now: Situation) -> tuple[Floats | None, Floats | None]:
        """Shares (E,) that were won, where they are; and the part (E,) of draws for prompts never visited, at least.

        The second is None where all prompts count alike: what was never visited then gets its part of the prompts.
        """
        if self.scorer.alike(now.drawn):
            return None, None
        # The oftener the prompts were passed over, the longer a run is likely to go on, and knowledge to pay.
        ripe = max(_UNRIPE, 1.0 - float(np.exp(-now.drawn / len(self.pool))))
        explore_E = np.minimum(self.config.explore * ripe, _UNSEEN_PART * candidates.unseen_E)
        mixer = now.learner.mixer
        if not mixer.compete:
            return None, explore_E
        won: Won = compete(candidates, scores, mixer.worth(), now.count, explore_E, mixer.late())
        return won.shares, won.explored
