"""What a model is fitted to: pass rates as logits for regressors, as weighted classes for classifiers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_SPREAD = 4.0
_MOST = 20.0


class Logits(NamedTuple):
    """Targets of a regression and their weights in (0, 1], shape (K,) each."""

    targets: Floats
    weights: Floats


def logits(passed: Floats, tried: Floats, offsets: Floats) -> Logits:
    """Empirical logits of pass rates, relative to offsets, all of shape (K,).

    The target is log((k + 1/2) / (n - k + 1/2)) - offset, kept within 20 of zero. A residual is the prompt's own
    difficulty, of variance 4 (the spread of measured pass rates), and sampling error of variance
    v = 1/(k + 1/2) + 1/(n - k + 1/2); its weight is 4 / (4 + v). Weights of 1/v alone would leave out just the
    prompts that always fail or always pass.

    References:
        Haldane, The estimation and significance of the logarithm of a ratio of frequencies, 1956; Gart and Zweifel,
        On the bias of various estimators of the logit and its variance, Biometrika 1967.

    >>> logits(np.array([4.0, 0.0]), np.array([8.0, 8.0]), np.array([0.0, 0.0])).targets.round(2)
    array([ 0.  , -2.83])
    """
    successes, failures = _counts(passed, tried)
    targets = np.log(successes / failures) - np.nan_to_num(offsets, posinf=_MOST, neginf=-_MOST)
    return Logits(np.clip(targets, -_MOST, _MOST), _SPREAD / (_SPREAD + 1.0 / successes + 1.0 / failures))


class Classes(NamedTuple):
    """Two weighted rows of a classification for each group: which group, success or not, and the weight."""

    groups: Rows
    labels: Rows
    weights: Floats


def classes(passed: Floats, tried: Floats) -> Classes:
    """Groups (K,) as rows of a classification: a success of weight k / n, a failure of weight (n - k) / n.

    A group is one observation whatever its size, and a row without weight is left out. Classifiers are not given
    fractional labels: they round them or refuse them.

    >>> classes(np.array([1.0, 4.0]), np.array([4.0, 4.0]))
    Classes(groups=array([0, 0, 1]), labels=array([1, 0, 1]), weights=array([0.25, 0.75, 1.  ]))
    """
    rate = np.clip(passed / np.maximum(tried, 1e-12), 0.0, 1.0)
    groups = np.repeat(np.arange(rate.size), 2)
    labels = np.tile([1, 0], rate.size)
    weights = np.stack([rate, 1.0 - rate], axis=1).ravel()
    kept = weights > 0.0
    return Classes(groups[kept], labels[kept], weights[kept])


def rollouts(passed: Floats, tried: Floats) -> Classes:
    """Groups (K,) as rows of a classification for models that take no weights: a row for each rollout, rounded.

    >>> rollouts(np.array([1.0]), np.array([3.0]))
    Classes(groups=array([0, 0, 0]), labels=array([1, 0, 0]), weights=array([1., 1., 1.]))
    """
    successes = np.rint(np.clip(passed, 0.0, tried)).astype(np.int64)
    counts = np.stack([successes, np.maximum(np.rint(tried).astype(np.int64) - successes, 0)], axis=1).ravel()
    groups, labels = np.repeat(np.arange(passed.size), 2), np.tile([1, 0], passed.size)
    return Classes(np.repeat(groups, counts), np.repeat(labels, counts), np.ones(int(counts.sum())))


def _counts(passed: Floats, tried: Floats) -> tuple[Floats, Floats]:
    k = np.clip(passed, 0.0, tried)
    return k + 0.5, tried - k + 0.5
