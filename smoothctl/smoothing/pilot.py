"""How many copies an image is worth: n chosen from an independent pilot sample.

The pilot only sets n; the bound then uses fresh copies at full alpha, which is valid because, given
the pilot, n is fixed. Prior, price and grid decide how efficient that is, never whether it is true.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from smoothctl.hooks.noises import Noise
from smoothctl.smoothing.bounds import clopper_pearson_lower

# What a further copy must gain, in radius per sigma: the price at which more copies do not pay.
PRICES = {"precise": 1.2e-6, "balanced": 2e-6, "fast": 6e-6, "draft": 1e-5}
# Selection with so few failures says little about p_A: then the pilot is extended.
NEARLY_UNANIMOUS = 3
PRIOR = (0.05, 1.0)
SIZES = (
    *(200, 500, 1_000, 2_000, 3_000, 5_000, 7_500, 10_000, 15_000, 20_000),
    *(30_000, 40_000, 50_000, 65_000, 80_000, 100_000),
)


@lru_cache(maxsize=4096)
def choose_n(failures: int, pilot: int, price: float, noise: Noise, alpha: float, n_max: int) -> int:
    """The n that maximises expected radius minus price * n; 0 if no sample is worth its price.

    The expectation is over the beta-binomial predictive distribution of failures, given
    ``failures`` of ``pilot`` copies and the prior Beta(0.05, 1) on the failure rate.
    """
    sizes = [size for size in SIZES if size < n_max] + [n_max]
    gains = [_expected_radius(failures, pilot, noise, alpha, size) - price * size for size in sizes]
    best = int(np.argmax(gains))
    return sizes[best] if gains[best] > 0 else 0


def _expected_radius(failures: int, pilot: int, noise: Noise, alpha: float, n: int) -> float:
    radii = _radii(noise, alpha, n)
    predictive = stats.betabinom(n, failures + PRIOR[0], pilot - failures + PRIOR[1])
    return float(np.dot(predictive.pmf(np.arange(len(radii))), radii))


@lru_cache(maxsize=64)
def _radii(noise: Noise, alpha: float, n: int) -> NDArray[np.float64]:
    """Radius at sigma 1 by number of failures, as far as it is certified at all."""
    bounds = clopper_pearson_lower(n - np.arange(n // 2 + 1), n, alpha)
    return np.array([noise.radius(float(bound), 1.0) for bound in bounds if bound >= 0.5])
