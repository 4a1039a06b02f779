"""An exact group-sequential test of "p_A exceeds p0", and its closure over a grid of radii.

Interim analyses come after n_1 < n_2 < ... < n_max votes. Failures are votes for other classes than the
selected one. "p_A > p0" is proved at analysis j if at most c_j of the n_j noise samples failed, where the
c_j are chosen so that under p_A = p0, and hence under any p_A <= p0 (fewer successes can only
cross later), the probability of ever crossing is at most alpha.

Two facts make this cheap. Stopping for futility never costs alpha, since it can only take proofs away.
And thresholds that are nested need no correction: if "largest r_i such that r_1..r_i are all
proved" is wrong, then the test of the first false threshold was wrong, which has probability at
most alpha (a closed test, Marcus, Peritz and Gabriel 1976).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from .expected_radius import PRIOR

FIRST = 10
# Each analysis takes so many times more samples than the one before, up to so many samples, then the other many times:
# simulated over published logs, small steps save the most early on, and late ones lose proofs of large radii.
GROWTH, EARLY, LATER_GROWTH = 1.2, 1000, 1.3
SPENDING_POWER = 0.25
# Selection ends when two equally likely classes would show so clear a majority with this probability at most.
CLEAR = 0.002
# The probability of a proof that a further noise sample must buy: a higher cost saves samples and loses proofs.
COST = 1e-7
# What even millions of noise samples need not promise more than.
HIGHEST_COST = 0.1
# Probability mass that may be left out at the far end of a distribution; it is counted as spent.
NEGLIGIBLE = 1e-18
# Below this alpha, what is left out would use it up.
LEAST_ALPHA = 1e-15
# What is kept of alpha: sums of up to a million positive terms in double precision err by less than the rest.
ROUNDING = 1.0 - 1e-9


def schedule(n_max: int) -> tuple[int, ...]:
    """Sample sizes of the analyses: 10, then 1.2 times more (1.3 above 1,000), rounded up to two digits, to n_max."""
    sizes = [min(FIRST, n_max)]
    while sizes[-1] < n_max:
        more = sizes[-1] * (GROWTH if sizes[-1] < EARLY else LATER_GROWTH)
        unit = 10 ** max(0, math.floor(math.log10(more)) - 1)
        sizes.append(min(n_max, math.ceil(round(more / unit, 6)) * unit))
    return tuple(sizes)


@lru_cache(maxsize=65536)
def is_clear(samples: int, failures: int) -> bool:
    """Whether more noise samples are not needed to select the class: a matter of efficiency, not of truth."""
    return bool(stats.binom.cdf(failures, samples, 0.5) <= CLEAR)


@lru_cache(maxsize=256)
def boundary(p0: float, alpha: float, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Largest numbers of failures c_j that prove p > p0 at each interim analysis; -1 where none does.

    Cumulative spending alpha * (n_j / n_max)^(1/4); what one analysis leaves unspent rolls over. The
    distribution of failures among runs that have not crossed is carried from one to the next.
    """
    bounds: list[int] = []
    low, mass, spent, before = 0, np.ones(1), 0.0, 0
    for size in sizes:
        low, mass, lost = _after_more(low, mass, size - before, 1.0 - p0)
        spent, before = spent + lost, size
        allowed = alpha * ROUNDING * (size / sizes[-1]) ** SPENDING_POWER - spent
        crossing = np.cumsum(mass)
        count = int(np.searchsorted(crossing, allowed, side="right"))
        bounds.append(low + count - 1 if count else max([-1, *bounds]))
        if count:
            spent += float(crossing[count - 1])
            low, mass = low + count, mass[count:]
    return tuple(bounds)


def _after_more(low: int, mass: NDArray, trials: int, rate: float) -> tuple[int, NDArray, float]:
    """Add Binomial(trials, rate) failures to a distribution that starts at ``low``; trim its ends."""
    spread = 12.0 * math.sqrt(trials * rate * (1.0 - rate)) + 50.0
    first = max(0, math.floor(trials * rate - spread))
    last = min(trials, math.ceil(trials * rate + spread))
    total = np.convolve(mass, stats.binom.pmf(np.arange(first, last + 1), trials, rate))
    above = np.cumsum(total[::-1])[::-1]
    keep = max(1, int(np.searchsorted(-above, -NEGLIGIBLE)))
    return low + first, total[:keep], float(total[keep:].sum()) + NEGLIGIBLE


@dataclass(frozen=True)
class Plan:
    """What a test of a grid of radii needs: sample sizes of the interim analyses, and boundaries [radii][analyses] that
    do not grow."""

    radii: tuple[float, ...]
    thresholds: tuple[float, ...]
    sizes: tuple[int, ...]
    bounds: tuple[tuple[int, ...], ...]

    @property
    def out_of_reach(self) -> tuple[float, ...]:
        """Radii that no votes can prove with so few noise samples."""
        return tuple(radius for radius, bounds in zip(self.radii, self.bounds, strict=True) if max(bounds) < 0)


def plan_radii(radii: Sequence[float], radius: Callable[[float], float], alpha: float, n_max: int) -> Plan:
    """Boundaries for rising radii, each at full alpha; ``radius(p)`` is what p_A >= p proves."""
    sizes = schedule(n_max)
    thresholds = tuple(least_probability(radius, target) for target in radii)
    bounds: list[tuple[int, ...]] = []
    for threshold in thresholds:
        own = boundary(threshold, alpha, sizes)
        # A larger radius never is easier: keeps the closure exact where rounding would not.
        bounds.append(tuple(map(min, own, bounds[-1])) if bounds else own)
    return Plan(tuple(radii), thresholds, sizes, tuple(bounds))


def least_probability(radius: Callable[[float], float], target: float) -> float:
    """The least p in [1/2, 1) with radius(p) >= target, to the last bit, by bisection.

    1.0 if no p below 1 reaches it.
    """
    low, high = 0.5, 1.0
    if radius(low) >= target:
        return low
    while (middle := 0.5 * (low + high)) not in (low, high):
        if radius(middle) >= target:
            high = middle
        else:
            low = middle
    return high


def is_futile(plan: Plan, proved: int, n: int, failures: int, selection: tuple[int, int]) -> bool:
    """Whether no later analysis promises a proof of the next radius that is worth the noise samples up to there.

    ``n`` samples are counted so far, of which ``failures`` failed; ``selection`` are (samples, failures)
    of the sample that chose the class. Given both, failures to come are beta-binomial; here their fraction
    follows the beta distribution of the same mean and variance. This decides only when to stop, never
    what is proved, so that it may use the selection's votes, a prior, and approximations.
    """
    sizes, bounds = np.array(plan.sizes), np.array(plan.bounds[proved])
    later = (sizes > n) & (bounds >= 0)
    more = sizes[later] - n
    seen = n + selection[0] + sum(PRIOR)
    rate = (failures + selection[1] + PRIOR[0]) / seen
    weight = more / (1.0 + (more - 1) / (seen + 1)) - 1.0
    few = np.clip((bounds[later] + 0.5 - failures) / more, 0.0, 1.0)
    chance = special.betainc(weight * rate, weight * (1.0 - rate), few)
    return bool((chance < np.minimum(COST * more, HIGHEST_COST)).all())
