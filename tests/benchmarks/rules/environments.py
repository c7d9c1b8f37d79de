"""Rules that choose environments and draw their prompts evenly."""

import warnings
from abc import abstractmethod
from importlib.util import find_spec
from typing import Any

import numpy as np

from curricula import PromptPool
from curricula.choosing.sampling import allocate
from rules.base import Floats, Rows, Rule


class EnvironmentRule(Rule):
    """Shares of the environments decide; within one, every prompt is as likely as any other."""

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        self.count = len(pool.environments)

    @abstractmethod
    def shares(self) -> Floats:
        """Share of each environment in the next batch, shape (E,)."""

    @abstractmethod
    def reward(self, codes: Rows, values: Floats) -> None:
        """Learn the mean |advantage| of K groups, (K,) each."""

    def _choose(self, n: int, free: Rows) -> Rows:
        codes = self.pool.codes[free]
        room = np.bincount(codes, minlength=self.count)
        counts = np.minimum(allocate(self.shares(), n, self.rng), room)
        while (missing := n - int(counts.sum())) > 0:
            counts = np.minimum(counts + allocate(np.where(counts < room, 1.0, 0.0), missing, self.rng), room)
        parts = [self.rng.choice(free[codes == code], count, replace=False) for code, count in enumerate(counts)]
        return np.concatenate(parts)

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        # With binary rewards q of a group are 1: |A| = |r - q| / sqrt(q(1-q)) has the mean 2 sqrt(q(1-q)).
        rate = passed / tried
        self.reward(self.pool.codes[rows].astype(np.int64), 2.0 * np.sqrt(rate * (1.0 - rate)))


class Sec(EnvironmentRule):
    """Self-evolving curriculum, arXiv 2505.14970: Q <- (1 - a) Q + a mean|A|, shares ~ exp(Q / tau).

    The paper's a = 0.5 and tau = 1.0 are those of its countdown runs.
    """

    name = "sec"
    rate, temperature = 0.5, 1.0

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        self.values = np.zeros(self.count)

    def shares(self) -> Floats:
        return softmax(self.values / self.temperature)

    def reward(self, codes: Rows, values: Floats) -> None:
        for code in np.unique(codes):
            self.values[code] += self.rate * (values[codes == code].mean() - self.values[code])


class Dump(EnvironmentRule):
    """DUMP, arXiv 2504.09710: mean |A| over a window plus sqrt(2 ln(n + 1) / (n_e + 1)), softmax at tau = 0.1."""

    name = "dump"
    window, temperature = 300, 0.1

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        self.windows: list[Floats] = [np.zeros(0) for _ in range(self.count)]
        self.pulls = np.zeros(self.count)

    def shares(self) -> Floats:
        means = np.array([window.mean() if window.size else 0.0 for window in self.windows])
        bound = np.sqrt(2.0 * np.log(self.pulls.sum() + 1.0) / (self.pulls + 1.0))
        return softmax((means + bound) / self.temperature)

    def reward(self, codes: Rows, values: Floats) -> None:
        self.pulls += np.bincount(codes, minlength=self.count)
        for code in np.unique(codes):
            self.windows[code] = np.concatenate([self.windows[code], values[codes == code]])[-self.window :]


class MabWiser(EnvironmentRule):
    """MABWiser's UCB1 (alpha 1), asked for its expectations once a batch; shares follow their softmax at 0.1.

    Its arms are not discounted. It predicts one arm at a time; a batch of the one best arm would not mix.
    """

    name = "mabwiser"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        from mabwiser.mab import MAB, LearningPolicy

        self.bandit = MAB(list(range(self.count)), LearningPolicy.UCB1(alpha=1.0), seed=int(rng.integers(1 << 31)))
        self.fitted = False

    def shares(self) -> Floats:
        if not self.fitted:
            return np.full(self.count, 1.0 / self.count)
        expected = self.bandit.predict_expectations()
        return softmax(np.array([expected[code] for code in range(self.count)]) / 0.1)

    def reward(self, codes: Rows, values: Floats) -> None:
        learn = self.bandit.partial_fit if self.fitted else self.bandit.fit
        learn(codes.tolist(), values.tolist())
        self.fitted = True


class Syllabus(EnvironmentRule):
    """Syllabus' learning progress over environments (arXiv 2106.14876): its distribution, drawn from here.

    Its evaluator is asked after each batch and answers with the latest success rate of each environment, as the
    batches gave it; the library's `sample` is left alone, as it fails with numpy 2.
    """

    name = "syllabus"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        # Its import makes every underflow of numpy an error, for the whole process.
        before = np.geterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from syllabus.curricula.learning_progress import LearningProgress
            from syllabus.task_space import DiscreteTaskSpace
        np.seterr(**before)
        self.rates = np.zeros(self.count)
        self.known = np.zeros(self.count, dtype=np.bool_)
        self.progress = LearningProgress(self, DiscreteTaskSpace(self.count))

    def evaluate_agent(self, *_: Any, **__: Any) -> tuple[None, "Rates", "Rates", None]:
        """What its evaluator is asked."""
        rates = self.rates.view(Rates)
        return None, rates, rates, None

    def shares(self) -> Floats:
        if not self.known.all():
            return np.full(self.count, 1.0 / self.count)
        return np.asarray(self.progress._sample_distribution(), dtype=np.float64)

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        codes = self.pool.codes[rows]
        told = np.unique(codes)
        for code in told:
            self.rates[code] = passed[codes == code].sum() / tried[codes == code].sum()
        self.known[told] = True
        if self.known.all():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.progress.eval_and_update()

    def reward(self, codes: Rows, values: Floats) -> None:
        raise AssertionError("it learns from success rates")


class Rates(np.ndarray):
    """An array with the one method of a torch tensor that is called."""

    def numpy(self) -> Floats:
        return np.array(self)


def softmax(logits: Floats) -> Floats:
    """Shares in proportion to exp(logit)."""
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


OPTIONAL = {"mabwiser": MabWiser, "syllabus": Syllabus}


def environment_rules() -> tuple[type[Rule], ...]:
    """Those whose package is installed."""
    return (Sec, Dump, *(rule for package, rule in OPTIONAL.items() if find_spec(package) is not None))
