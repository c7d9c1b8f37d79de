"""Beliefs that know an environment's ability, what its prompts are like, and what each prompt did."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.abilities import Abilities, likelihood
from curricula.beliefs.base import Assessment, Normaliser
from curricula.beliefs.bins import Bins
from curricula.beliefs.evidence import MOST_CLOCK, Evidence, Held
from curricula.beliefs.grid import NODES, rates, spreads, variance_class
from curricula.beliefs.shapes import BINS, Shapes
from curricula.beliefs.sums import rounds
from curricula.beliefs.totals import Totals
from curricula.config import HierarchicalConfig
from curricula.objectives import signal_of_rates
from curricula.pool import PromptPool
from curricula.stateful import MOST, Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_RECENT = 2048
_PART = 1 << 16
_REFIT_EVERY = 8
_DOUBT = np.sqrt(3.0)  # outer nodes of the Gauss-Hermite rule of three points, in standard deviations
_DOUBT_NODES = ((-_DOUBT, 1.0 / 6.0), (0.0, 2.0 / 3.0), (_DOUBT, 1.0 / 6.0))


class Hierarchical:
    """Posteriors of pass rates whose logit is an ability plus a deviation: p_i = sigmoid(A_e + d_i).

    - A_e, the ability of the policy in environment e, moves with training and is filtered from every batch
      (`Abilities`). When it moves, what is believed of all its prompts moves with it. It is two: that on prompts
      which were visited, and so trained on, and that on new ones. They move alike as far as nothing else is seen;
      where prompts are learned by heart they part, and new prompts are not taken for mastered.
    - d_i has a prior of learned shape, given the environment and the predicted difficulty of the prompt (`Shapes`):
      pass rates are U-shaped, and a normal distribution knows no prompts that are never solved.
    - the prompt's own groups enter by their exact likelihood at the ability of their time (`Evidence`).

    With L_i the likelihood of the prompt's groups and pi its prior, both on a grid of deviations,

        posterior_i(d) ~ pi_e,bin(d) (B_v L_i)(d),   v = drift (A_now - A_then)^2 + ageing (asks since then)
        L_i(d) <- (B_v L_i)(d) p(A_e, d)^k (1 - p(A_e, d))^(n - k)   at a group with k successes of n rollouts

    where p(A, d) = sigmoid(A + d), or 0 for "never solved", and A_e is the ability after the batch that the group
    came in. B_v spreads doubt as a random walk of variance v, rounded to one of `grid.VARIANCES`; while it rounds to
    none, "then" stays where it was. So evidence ages with the ability and with time, and as L_i is kept within
    exp(-12.75) of its maximum, neither mastered nor hopeless prompts are believed to be so for ever. k may be a
    fraction. What is expected of a pass rate f(p) is

        sum_d posterior_i(d) E f(p(A, d)),   A ~ N(A_e, C_e)

    with the outer mean by Gauss-Hermite quadrature of three points, as if deviation and ability were independent.

    There is no term for what a prompt gains by having been trained on: it enters as the ability and the prompt's own
    groups see it.

    Args:
        pool: The prompts.
        config: `drift`, `ageing` and `noise`, the variance that a batch adds to an ability.

    References:
        Rasch models with drifting ability; Glickman, Parameter estimation in large dynamic paired comparison
        experiments, JRSS C 1999. Neal and Hinton, A view of the EM algorithm, 1998 (the prior's shape).
    """

    predicted = True

    def __init__(self, pool: PromptPool, config: HierarchicalConfig) -> None:
        self.pool, self.config = pool, config
        self._spreads = np.ascontiguousarray(spreads().transpose(0, 2, 1), dtype=np.float32)
        self.clear()

    def clear(self) -> None:
        """Forget all evidence."""
        environments = len(self.pool.environments)
        self.evidence = Evidence(len(self.pool))
        # Of prompts that were visited, and of new ones, by turns.
        self.abilities = Abilities(2 * environments, self.config.noise, paired=True)
        self.shapes = Shapes(environments)
        self.bins = Bins(self.pool)
        self.visited = 0
        self.clock = 1
        self._updates = 0
        self._refit_at = 0
        self._recent: Rows = np.zeros(0, dtype=np.int64)
        self.totals = Totals(self.pool)
        self._tables: dict[tuple[int, Normaliser], NDArray[np.float32]] = {}

    def tick(self) -> None:
        """An ask was made: all evidence is that much older."""
        self.clock += 1

    def ability(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the ability for new prompts of each environment, in logits, (E,) each."""
        return self.abilities.mean_E[1::2].copy(), np.sqrt(self.abilities.variance_E[1::2])

    def place(self, rows: Rows, predictions: Floats) -> None:
        """Take predicted logits (M,) of unvisited rows (M,), on any scale, as what is known of their deviations."""
        bins = self.bins.of(self.pool.codes[rows], predictions)
        self.totals.place(rows, bins)
        self.evidence.place(rows, bins)

    def seen(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows were visited, shape (M,)."""
        return self.evidence.seen(rows)

    def assess(self, rows: Rows, group_size: int, normaliser: Normaliser) -> Assessment:
        """Expected pass rate and signal of rows (M,)."""
        codes = self.pool.codes[rows]
        table_ANC = self._table(group_size, normaliser)
        held = self.evidence.read(rows)
        kinds = _kinds(codes, held)
        weight_MN = self._posterior(rows, codes, held)
        ordered = bool((kinds[1:] >= kinds[:-1]).all())
        order = np.arange(rows.size) if ordered else kinds.argsort(kind="stable")
        if not ordered:
            weight_MN, kinds = weight_MN[order], kinds[order]
        sums_MC = np.empty((rows.size, table_ANC.shape[2]))
        edges = kinds.searchsorted(np.arange(len(table_ANC) + 1)).tolist()
        for kind in np.flatnonzero(np.diff(edges)).tolist():
            part = slice(edges[kind], edges[kind + 1])
            sums_MC[order[part]] = weight_MN[part] @ table_ANC[kind]
        means, signals, squares = sums_MC[:, :3].T / sums_MC[:, 3]
        return Assessment(means, signals, np.sqrt(np.maximum(squares - signals * signals, 0.0)))

    def moments(self, rows: Rows) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation of each row's pass rate, shape (M,) each."""
        means, products, _ = self.assess(rows, 2, "batch")
        # With G = 2 the signal is E[p (1 - p)], so the variance is E[p] - E[p (1 - p)] - E[p]^2.
        return means, np.sqrt(np.maximum(means - products - means * means, 0.0))

    def pool_means(self, windows_E2: Rows) -> Floats:
        """Mean belief over the eligible prompts of each environment, shape (E,); O(levels)."""
        mean_AN = self._table(2, "batch")[:, :, 0].astype(np.float64)
        return self.totals.means(windows_E2, mean_AN, self.shapes.prior_EBN, self.bins.block_bins)

    def update(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        """Learn K outcomes in order: successes (K,) of rollouts (K,) at rows (K,); a row may come more than once."""
        for part in rounds(rows):
            if part.size:
                self._update(rows[part], passed[part], tried[part])
        if rows.size:
            self._updates += 1
            if self.visited >= self._refit_at or self._updates % _REFIT_EVERY == 0:
                self._refit()

    def _update(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        codes = self.pool.codes[rows].astype(np.int64)
        held = self.evidence.read(rows)
        bins = self._bins(rows, held)
        classes = self._classes(codes, held)
        aged = self._aged(held, classes).astype(np.float64)
        before = aged * self.shapes.prior_EBN[codes, bins]
        before /= before.sum(axis=1, keepdims=True)
        kinds = _kinds(codes, held)
        self.abilities.update(kinds, before, passed, tried)
        mean_A = self.abilities.mean_E
        likely = likelihood(rates(mean_A), kinds, passed, tried)
        fresh = held.clock_M == 0
        self.visited += int(fresh.sum())
        self._recent = np.concatenate([self._recent, rows[fresh]])[-_RECENT:]
        new = aged * likely
        # An age too small to count is not lost: it goes on from the group before.
        young = ~fresh & (classes == 0)
        then_K = np.where(young, held.ability_M, mean_A[kinds])
        asks_K = np.where(young, held.clock_M, self.clock)
        written_KN = self.evidence.write(rows, new, then_K, asks_K, bins)
        self.totals.replace(rows, fresh, held.likelihood_MN, written_KN)
        self._tables.clear()

    def _refit(self) -> None:
        self._refit_at = self.visited + max(16, self.visited // 8)
        rows = self._recent
        codes = self.pool.codes[rows].astype(np.int64)
        held = self.evidence.read(rows)
        posterior_MN = _normalised(self._posterior(rows, codes, held))
        self.shapes.refit(codes, self._bins(rows, held), posterior_MN)
        self.totals.correct(rows, held.likelihood_MN, posterior_MN)
        self._tables.clear()

    def _bins(self, rows: Rows, held: Held) -> Rows:
        if not self.pool.has_levels:
            return held.bin_M
        return np.where(held.bin_M > 0, held.bin_M, self.bins.block_bins[self.pool.blocks[rows]])

    def _classes(self, codes: NDArray[Any], held: Held) -> Rows:
        """By which of the variances of the grid the evidence has aged, (M,)."""
        moved = self.abilities.mean_E[_kinds(codes, held)] - held.ability_M
        age = min(self.clock, MOST_CLOCK) - held.clock_M
        variance = self.config.drift * moved * moved + self.config.ageing * age
        return np.where(held.clock_M > 0, variance_class(variance), 0)

    def _aged(self, held: Held, classes: Rows) -> NDArray[np.float32]:
        """Likelihoods as old as they are by now, (M, nodes)."""
        counts = np.bincount(classes)
        if counts.size <= 1:
            return held.likelihood_MN
        if counts.max() == classes.size:
            return held.likelihood_MN @ self._spreads[counts.size - 1]
        # Rows of one class stand together, so that each class is one product of matrices.
        order = classes.astype(np.int8).argsort(kind="stable")
        weight_MN = held.likelihood_MN[order]
        edges = counts.cumsum().tolist()
        for place in (np.flatnonzero(counts[1:]) + 1).tolist():
            part = slice(edges[place - 1], edges[place])
            weight_MN[part] = weight_MN[part] @ self._spreads[place]
        aged_MN = np.empty_like(weight_MN)
        aged_MN[order] = weight_MN
        return aged_MN

    def _posterior(self, rows: Rows, codes: NDArray[Any], held: Held) -> NDArray[np.float32]:
        """Posteriors of rows (M,) over the nodes, not normalised."""
        place = codes * np.int64(BINS + 1) + self._bins(rows, held)
        weight_MN = self._aged(held, self._classes(codes, held))
        weight_MN *= self.shapes.prior_PN.take(place, axis=0)
        return weight_MN

    def _table(self, group_size: int, normaliser: Normaliser) -> NDArray[np.float32]:
        """Pass rate, signal, its square and 1 at each node, over the density of each ability: (2 E, nodes, 4)."""
        key = (group_size, normaliser)
        if key not in self._tables:
            table_ANC = np.zeros((len(self.abilities.mean_E), NODES, 4))
            for doubt, weight in _DOUBT_NODES:
                rate = rates(self.abilities.mean_E + doubt * np.sqrt(self.abilities.variance_E))
                signal = signal_of_rates(rate, group_size, normaliser)
                table_ANC += weight * np.stack([rate, signal, signal * signal, np.ones(rate.shape)], axis=2)
            self._tables[key] = table_ANC.astype(np.float32)
        return self._tables[key]

    def recount(self) -> None:
        """Take the sums over blocks anew, of the posteriors as they are now."""
        self.totals = Totals(self.pool)
        known = np.flatnonzero(self.evidence.records["word"])
        for rows in np.split(known, range(_PART, known.size, _PART)):
            rows = rows[self.evidence.seen(rows)]
            likelihood_MN = self.evidence.read(rows).likelihood_MN
            self.totals.replace(rows, np.ones(rows.size, dtype=np.bool_), likelihood_MN, likelihood_MN)
        rows = self._recent
        held = self.evidence.read(rows)
        posterior_MN = _normalised(self._posterior(rows, self.pool.codes[rows].astype(np.int64), held))
        self.totals.correct(rows, held.likelihood_MN, posterior_MN)

    def state_dict(self) -> dict[str, Any]:
        """Evidence of the rows that have any, and all that is learned of environments."""
        return {
            "type": "hierarchical",
            "evidence": self.evidence.state_dict(),
            "abilities": self.abilities.state_dict(),
            "shapes": self.shapes.state_dict(),
            "bins": self.bins.state_dict(),
            "recent": self._recent.copy(),
            "totals": self.totals.state_dict(),
            "clock": self.clock,
            "updates": self._updates,
            "refit": self._refit_at,
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        recent = state.array("recent", np.int64, (None,), high=len(self.pool) - 1)
        clock, updates = state.integer("clock", low=1), state.integer("updates")
        refit = state.integer("refit", high=MOST)
        state.ensure("recent", "at most 2048 rows", recent.size <= _RECENT)
        self.abilities.load(state.section("abilities"))
        self.shapes.load(state.section("shapes"))
        self.bins.load(state.section("bins"))
        self.visited = self.evidence.load(state.section("evidence"))
        self.totals.load(state.section("totals"))
        self._recent = recent
        self.clock, self._updates, self._refit_at = clock, updates, refit
        self._tables.clear()


def _kinds(codes: NDArray[Any], held: Held) -> Rows:
    """Which ability is that of each prompt, (M,): 2 e where it was visited, 2 e + 1 where it is new."""
    return 2 * codes.astype(np.int64) + (held.clock_M == 0)


def _normalised(weight_MN: NDArray[np.float32]) -> Floats:
    posterior_MN = weight_MN.astype(np.float64)
    return posterior_MN / posterior_MN.sum(axis=1, keepdims=True)
