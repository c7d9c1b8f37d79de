"""How far the two log-probabilities of each token are apart: of the generator, which sampled it, and the trainer."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NO_NUMBER = -9999.0
"""What vLLM's servers give for minus infinity, which JSON does not have; and for what is below."""


def apart(sampled: Floats, trained: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Absolute differences, in nats, and the terms of KL(generator || trainer), of the tokens that have both.

    A term is exp(d) - 1 - d with d = log trainer - log generator, which is never negative (k3 of
    http://joschu.net/blog/kl-approx.html).

    Args:
        sampled: Shape (T,), the generator's.
        trained: Shape (T,), the trainer's.

    Returns:
        Differences and terms, shape (K,); and which of the T tokens are those K: with two numbers, and a finite term.

    >>> differences, terms, known = apart(np.array([-1.0, -9999.0, np.nan]), np.array([-1.5, -2.0, -3.0]))
    >>> differences.tolist(), terms.round(4).tolist(), known.tolist()
    ([0.5], [0.1065], [True, False, False])
    """
    with np.errstate(all="ignore"):
        difference = trained - sampled
        terms = np.expm1(difference) - difference
        known = np.isfinite(terms) & np.isfinite(sampled) & (sampled > NO_NUMBER)
    return np.abs(difference[known]), terms[known], known
