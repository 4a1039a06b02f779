"""Confidence bounds and tests on votes: pure functions on numbers and arrays.

Votes for a class among n independent noise samples are Binomial(n, p). All bounds are exact
(Clopper and Pearson 1934) and one-sided unless they say otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from smoothctl.base.errors import UsageError


def clopper_pearson_lower(k: ArrayLike, n: ArrayLike, alpha: float) -> Any:
    """Lower bound on p that holds with probability 1-alpha, from k successes in n trials.

    Cohen et al. 2019, LOWERCONFBOUND: the alpha-quantile of Beta(k, n-k+1); 0 for k = 0 and
    alpha^(1/n) for k = n. Shapes broadcast; float64. Raises UsageError unless 0 <= k <= n, n >= 1
    and 0 < alpha < 1.
    """
    successes, trials = _checked(k, n, alpha)
    with np.errstate(invalid="ignore"):
        bound = special.betaincinv(successes, trials - successes + 1.0, alpha)
    return _scalar(np.where(successes == 0, 0.0, bound))


def clopper_pearson_upper(k: ArrayLike, n: ArrayLike, alpha: float) -> Any:
    """Upper bound on p that holds with probability 1-alpha: 1 - lower(n-k, n, alpha)."""
    successes, trials = _checked(k, n, alpha)
    failures = trials - successes
    with np.errstate(invalid="ignore"):
        bound = special.betainccinv(successes + 1.0, failures, alpha)
    return _scalar(np.where(failures == 0, 1.0, bound))


def top_two_p_value(first: ArrayLike, second: ArrayLike) -> Any:
    """Two-sided exact binomial p-value that the two leading classes are equally likely.

    Cohen et al. 2019, PREDICT, after Hung and Fithian 2019: valid without a correction for the
    number of classes. ``first`` and ``second`` are the two largest counts; 1 where both are 0.
    """
    larger = np.maximum(first, second).astype(np.float64)
    total = np.asarray(first, dtype=np.float64) + np.asarray(second, dtype=np.float64)
    # P(X >= k) for X ~ Binomial(n, 1/2) is the regularised incomplete beta function I_1/2(k, n-k+1).
    with np.errstate(invalid="ignore"):
        tail = special.betainc(larger, total - larger + 1.0, 0.5)
    return _scalar(np.where(larger == 0, 1.0, np.minimum(1.0, 2.0 * tail)))


def least_n_to_certify(alpha: float) -> int:
    """The smallest n at which unanimous votes prove p_A >= 1/2: alpha^(1/n) >= 1/2."""
    return _least(lambda n: alpha ** (1.0 / n) >= 0.5, math.log(alpha) / math.log(0.5))


def least_n_to_predict(alpha: float) -> int:
    """The smallest n at which unanimous votes are significant: 2 * 2^-n <= alpha."""
    return _least(lambda n: 2.0 ** (1 - n) <= alpha, 1.0 - math.log2(alpha))


def require_n_to_predict(n: int, alpha: float, command: str = "predict") -> None:
    """Raise UsageError for an n that can never return a class at this alpha."""
    least = least_n_to_predict(alpha)
    if n < least:
        raise UsageError(f"n={n} can never reach alpha={alpha:g}; {command} needs n>={least}")


def _least(enough: Any, about: float) -> int:
    n = max(1, math.floor(about) - 1)
    while not enough(n):
        n += 1
    return n


def _checked(k: ArrayLike, n: ArrayLike, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    successes, trials = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(n, np.float64))
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha must lie between 0 and 1 (got {alpha:g})")
    if not (np.all(trials >= 1) and np.all(successes >= 0) and np.all(successes <= trials)):
        raise UsageError("a binomial bound needs 0 <= k <= n and n >= 1")
    return successes, trials


def _scalar(value: NDArray[np.float64]) -> Any:
    return float(value) if value.ndim == 0 else value
