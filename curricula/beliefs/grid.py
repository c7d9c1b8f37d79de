"""The grid that deviations of prompts live on, and how doubt spreads on it as evidence ages."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NODES = 22
"""Node 0 stands for prompts that are never solved, whatever the ability; the others are deviations in logits."""

REACH = 6.6
DEVIATIONS: Floats = np.linspace(-REACH, REACH, NODES - 1)
SPACING = float(DEVIATIONS[1] - DEVIATIONS[0])

VARIANCES: Floats = np.concatenate([[0.0], np.geomspace(0.01, 4.0, 11)])
"""Variances, in squared logits, by which evidence may have aged; ages are rounded to one of them."""

_BETWEEN: Floats = np.concatenate([[0.005], np.sqrt(VARIANCES[1:-1] * VARIANCES[2:])])


def rates(ability_E: Floats) -> Floats:
    """Pass rate at each node for abilities (E,), shape (E, K): sigmoid(ability + deviation), and 0 at node 0."""
    rate_EK = np.zeros((len(ability_E), NODES))
    rate_EK[:, 1:] = 0.5 + 0.5 * np.tanh(0.5 * (ability_E[:, None] + DEVIATIONS))
    return rate_EK


def variance_class(variance_M: Floats) -> NDArray[np.int64]:
    """Place in `VARIANCES` of the nearest one, on a logarithmic scale; shape (M,)."""
    return _BETWEEN.searchsorted(variance_M, side="right")


def spreads() -> Floats:
    """How doubt spreads: for each of the V variances, transition probabilities from node (row) to node, (V, K, K).

    A random walk of that variance on the deviations; "never solved" stays what it is. Variances below the square of
    the spacing are steps to the two neighbours with the probability that gives the variance.
    """
    squares = (DEVIATIONS[:, None] - DEVIATIONS) ** 2
    result = np.zeros((len(VARIANCES), NODES, NODES))
    result[:, 0, 0] = 1.0
    for place, variance in enumerate(VARIANCES.tolist()):
        if variance < 0.6 * SPACING**2:
            step = variance / SPACING**2 / 2.0
            kernel = np.eye(NODES - 1) * (1.0 - 2.0 * step)
            kernel += step * (np.eye(NODES - 1, k=1) + np.eye(NODES - 1, k=-1))
        else:
            kernel = np.exp(-0.5 * squares / variance)
        result[place, 1:, 1:] = kernel / kernel.sum(axis=1, keepdims=True)
    return result


def shift(masses_XK: Floats, by_X: Floats) -> Floats:
    """Distributions moved along the deviations by so many logits each, shape (X, K); node 0 keeps its mass.

    Mass between two nodes is split between them; what would leave the grid stays at its edge.

    >>> float(shift(np.eye(NODES)[[5]], np.array([SPACING / 2]))[0, 6])
    0.5
    """
    places = np.clip(np.arange(NODES - 1) + by_X[:, None] / SPACING, 0.0, NODES - 2.0)
    low = np.minimum(places.astype(np.int64), NODES - 3)
    part = places - low
    moved = np.zeros_like(masses_XK)
    moved[:, 0] = masses_XK[:, 0]
    flat = moved.reshape(-1)
    start = np.arange(len(masses_XK))[:, None] * NODES + 1
    np.add.at(flat, start + low, masses_XK[:, 1:] * (1.0 - part))
    np.add.at(flat, start + low + 1, masses_XK[:, 1:] * part)
    return moved
