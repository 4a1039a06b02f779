"""How many noise samples an image is worth: n chosen from an independent pilot sample.

The pilot only sets n; the bound then uses fresh samples at full alpha, which is valid because, given
the pilot, n is fixed. Prior, cost and grid decide how efficient that is, never whether it is true.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from smoothctl import Noise

PRIOR = (0.05, 1.0)
SIZES = (
    *(200, 500, 1_000, 2_000, 3_000, 5_000, 7_500, 10_000, 15_000, 20_000),
    *(30_000, 40_000, 50_000, 65_000, 80_000, 100_000),
)


# Counts of failures up to here are weighed one by one, more in blocks between these fractions of n.
FEW = 64
EDGES = np.concatenate([np.geomspace(1e-6, 0.02, 256), np.linspace(0.02, 0.5, 256)[1:]])


@lru_cache(maxsize=4096)
def choose_n(failures: int, pilot: int, cost: float, noise: Noise, alpha: float, n_max: int) -> int:
    """The n that maximises expected radius minus cost * n; 0 if no sample is worth its cost.

    The expectation is over the beta-binomial predictive distribution of failures, given ``failures`` of ``pilot``
    samples and the prior Beta(0.05, 1) on the failure rate. Its cost does not depend on n.
    """
    sizes = [size for size in SIZES if size < n_max] + [n_max]
    rate = failures + PRIOR[0], pilot - failures + PRIOR[1]
    gains = [_expected_radius(rate, noise, alpha, size) - cost * size for size in sizes]
    best = int(np.argmax(gains))
    return sizes[best] if gains[best] > 0 else 0


def _expected_radius(rate: tuple[float, float], noise: Noise, alpha: float, n: int) -> float:
    counts, ways, radii = _blocks(noise, alpha, n)
    chances = np.exp(ways + special.betaln(counts + rate[0], n - counts + rate[1]) - special.betaln(*rate))
    return float(chances @ radii)


@lru_cache(maxsize=256)
def _blocks(noise: Noise, alpha: float, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Counts of failures up to n / 2, each for a block of neighbours: the logarithm of the ways to choose so many of n,
    times the size of the block, and the radius at sigma 1 that they leave."""
    edges = np.unique(np.concatenate([np.arange(FEW), np.ceil(EDGES * n), [n // 2 + 1]]))
    edges = edges[edges <= n // 2 + 1]
    widths = np.diff(edges)
    counts = edges[:-1] + (widths - 1) / 2
    ways = np.log(widths) - np.log1p(n) - special.betaln(n - counts + 1, counts + 1)
    bounds = special.betaincinv(n - counts, counts + 1, alpha)
    return counts, ways, np.array([noise.radius(bound, 1.0) if bound >= 0.5 else 0.0 for bound in bounds.tolist()])
