"""The sum of several predictors, each weighed by what it was right about."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaRuntimeError
from curricula.pool import PromptPool
from curricula.predictors.base import Predictor
from curricula.predictors.targets import logits
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_PRIOR_PROMPTS = 30.0
_DOUBT = 10.0
_DISCOUNT = 0.9995
_MOST = 1e12


class Stack:
    """A weighted sum of predictors of the deviation of prompts from their environment's mean.

    Before anything is learned from a visit, every member predicts it. With r the visit's logit less its environment's
    mean (shrunk to the mean of all by 30 prompts) and f the J members' predictions, the weights a >= 0 minimise

        sum over visits of d w (r - a f)^2  +  10 * sum over members of (a_j - 1 / J)^2,    d = .9995^n,

    with n the visits told in later tells: those of one tell count alike. The prior and the environments' means are not
    discounted. So weights are earned on prompts that the members had not seen, a member that knows nothing gets none,
    and one that claims too much is scaled down. In the Cholesky factor of its matrix this is non-negative least
    squares, and solved exactly. Members are then told the visits, with the environment's mean added to its ability.

    `metrics` has `predictor/skill`, the part of the squared deviations that the weighted sum predicted in this way, and
    `predictor/error`, the root mean square of what is left, sampling error included, in logits.

    References:
        Breiman, Stacked regressions, Machine Learning 1996; Dawid, Present position and potential developments: the
        prequential approach, 1984.
    """

    def __init__(self, pool: PromptPool, members: Sequence[tuple[str, Predictor]]) -> None:
        self._codes = pool.codes
        self.names = [name for name, _ in members]
        self.members = [member for _, member in members]
        self.foreground = any(getattr(member, "foreground", False) for member in self.members)
        count = len(members)
        self._levels_E2: Floats = np.zeros((len(pool.environments), 2))
        self._products_JJ: Floats = np.zeros((count, count))
        self._fits_J: Floats = np.zeros(count)
        # Of the weighted sum as it stood: weights, squared deviations, squared errors.
        self._account: Floats = np.zeros(3)

    def predict(self, rows: Rows) -> Floats:
        """Predicted logits of rows (M,), relative to their environment's mean."""
        return self._predictions(rows) @ self.weights()

    def learn(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Judge the members by K first visits, then let them learn these."""
        if rows.size == 0:
            return
        codes = self._codes[rows]
        targets, weights = logits(passed, tried, offsets)
        deviations = targets - self._levels()[codes]
        predictions_KJ = self._predictions(rows)
        left = deviations - predictions_KJ @ self.weights()
        fade = _DISCOUNT**rows.size
        self._account = fade * self._account + (weights.sum(), weights @ deviations**2, weights @ left**2)
        self._products_JJ = fade * self._products_JJ + (predictions_KJ * weights[:, None]).T @ predictions_KJ
        self._fits_J = fade * self._fits_J + predictions_KJ.T @ (weights * deviations)
        np.add.at(self._levels_E2, codes, np.stack([weights * targets, weights], axis=1))
        means = self._levels()[codes]
        for member in self.members:
            member.learn(rows, passed, tried, offsets + means)

    def bind(self, model: Any, tokenizer: Any) -> None:
        """Give the policy to the members that read it."""
        for member in self.members:
            if (bind := getattr(member, "bind", None)) is not None:
                bind(model, tokenizer)

    def weights(self) -> Floats:
        """Weight of each member, shape (J,), none negative."""
        optimize: Any = import_module("scipy.optimize")
        count = len(self.members)
        factor = np.linalg.cholesky(self._products_JJ + _DOUBT * np.eye(count))
        seen = np.linalg.solve(factor, self._fits_J + _DOUBT / count)
        return np.asarray(optimize.nnls(factor.T, seen, maxiter=100 * count)[0], dtype=np.float64)

    def metrics(self) -> dict[str, float]:
        """Skill and error of predictions made before the outcome, and each member's weight."""
        result = {f"predictor/{name}/weight": float(w) for name, w in zip(self.names, self.weights(), strict=True)}
        total, squares, errors = self._account.tolist()
        if squares > 0.0:
            result |= {"predictor/skill": 1.0 - errors / squares, "predictor/error": float(np.sqrt(errors / total))}
        return result

    def state_dict(self) -> dict[str, Any]:
        """The accounts, and each member's state."""
        return {
            "names": ",".join(self.names),
            "levels": self._levels_E2.copy(),
            "products": self._products_JJ.copy(),
            "fits": self._fits_J.copy(),
            "account": self._account.copy(),
            "members": {str(place): member.state_dict() for place, member in enumerate(self.members)},
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        names = ",".join(self.names)
        state.ensure("names", f"the predictors of this mix ({names})", state.text("names") == names)
        levels = state.array("levels", np.float64, self._levels_E2.shape, low=-_MOST, high=_MOST)
        products = state.array("products", np.float64, self._products_JJ.shape, low=-_MOST, high=_MOST)
        even = bool(np.allclose(products, products.T)) and bool((np.linalg.eigvalsh(products) > -0.5 * _DOUBT).all())
        state.ensure("products", "sums of products", even)
        fits = state.array("fits", np.float64, self._fits_J.shape, low=-_MOST, high=_MOST)
        account = state.array("account", np.float64, (3,), high=_MOST)
        # What was seen was weighed: each of the two sums is above zero where the other is.
        state.ensure("levels", "weights that are not negative", bool((levels[:, 1] >= 0.0).all()))
        weighed = bool(account[0] > 0.0) == bool(levels[:, 1].sum() > 0.0) and bool(
            account[0] > 0.0 or not account.any()
        )
        state.ensure("account", "the weight of what was seen", weighed)
        inner = state.section("members")
        for place, member in enumerate(self.members):
            member.load(inner.section(str(place)))
        self._levels_E2, self._products_JJ, self._fits_J, self._account = levels, products, fits, account

    def _levels(self) -> Floats:
        """Mean target of each environment, shape (E,)."""
        sums, weights = self._levels_E2.T
        overall = sums.sum() / (weights.sum() + 1e-9)
        return (sums + _PRIOR_PROMPTS * overall) / (weights + _PRIOR_PROMPTS)

    def _predictions(self, rows: Rows) -> Floats:
        columns: list[Floats] = []
        for name, member in zip(self.names, self.members, strict=True):
            values = np.asarray(member.predict(rows), dtype=np.float64)
            if values.shape != rows.shape:
                raise CurriculaRuntimeError(
                    f"{name}: expected predictions of shape {rows.shape}; got an array of shape {values.shape}"
                )
            columns.append(np.clip(np.nan_to_num(values), -1e3, 1e3))
        return np.stack(columns, axis=1)
