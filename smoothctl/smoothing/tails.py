"""Clopper and Pearson's bounds as proofs: rounding is on the safe side.

``bounds`` computes them to about twelve digits, which is enough for intervals and plots. What a certificate states is
checked: the binomial tail at the bound is summed, with a bound on its rounding errors, and the bound is lowered until
that is at most alpha.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from smoothctl.smoothing.bounds import clopper_pearson_lower

PRECISION = 160
CHUNK = 4096
UNIT = 2.0**-52
MARGIN = 2.0**-40
"""What radii are lowered by, relatively and in units of sigma: a thousand times the error of double precision."""


@lru_cache(maxsize=2**16)
def proven_lower(k: int, n: int, alpha: float) -> float:
    """The largest number found near Clopper and Pearson's p with P(X >= k) <= alpha under Binomial(n, p), proved.

    It is below 1. Raises UsageError unless 0 <= k <= n, n >= 1 and 0 < alpha < 1.
    """
    bound, gap = float(clopper_pearson_lower(k, n, alpha)) * (1.0 - 2.0**-48), 2.0**-48
    while bound > 0.0 and tail(k, n, bound) > alpha:
        bound *= 1.0 - gap
        gap *= 4.0
    return bound


def proven_upper(k: int, n: int, alpha: float) -> float:
    """Upper bound on p: 1 - lower(n - k, n, alpha), rounded up."""
    return min(1.0, math.nextafter(1.0 - proven_lower(n - k, n, alpha), 2.0))


def proven_lowers(k: NDArray[np.int64], n: NDArray[np.int64], alpha: float) -> NDArray[np.float64]:
    """:func:`proven_lower` for arrays; equal pairs are computed once."""
    pairs, back = np.unique(np.stack([k, n]), axis=1, return_inverse=True)
    bounds = [proven_lower(int(successes), int(trials), alpha) for successes, trials in pairs.T]
    return np.array(bounds, np.float64)[back.reshape(-1)]


def tail(k: int, n: int, p: float) -> float:
    """A number that is proved to be at least P(X >= k) for X ~ Binomial(n, p), 0 < p < 1, and close to it.

    The first term P(X = k) comes from mpmath at 160 bits. The others are products of the ratios
    (n-j)/(j+1) * p/(1-p), four roundings each; m of them, added, are off by (5 m + 4) units of 2^-52 at most,
    relatively, since all are positive. The ratios fall, so that what is left out is less than a geometric series.
    """
    if k <= 0:
        return 1.0
    with mpmath.workprec(PRECISION):
        exact = mpmath.mpf(p)
        ways = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        first = mpmath.exp(ways + k * mpmath.log(exact) + (n - k) * mpmath.log(1 - exact))
        odds = float(exact / (1 - exact))
        terms, total, start, rest = 1.0, 1.0, k, 0.0
        while start < n:
            j = np.arange(start, min(n, start + CHUNK), dtype=np.float64)
            ratios = (n - j) / (j + 1.0) * odds
            products = terms * np.cumprod(ratios)
            total += float(products.sum())
            start, terms = start + len(j), float(products[-1])
            following = (n - start) / (start + 1.0) * odds
            if following < 1.0 and (rest := terms * following / (1.0 - following)) <= 1e-17 * total:
                break
        steps = start - k
        proved = first * (total + 2.0 * rest) * (1 + (6 * steps + 16) * UNIT)
        return math.nextafter(float(proved), math.inf)


def lowered(radius: Any, sigma: float) -> Any:
    """Radii (numbers or arrays, at least 0) less the margin that covers rounding; never below 0."""
    return np.maximum(0.0, radius * (1.0 - MARGIN) - sigma * MARGIN)
