"""Laplace noise: an L1 radius of -lambda * log(2 (1 - p_A)), lambda its scale (Teng et al. 2020; Yang et al. 2020).

Sigma is the standard deviation of a coordinate, as in the latter, so that noises can be compared: lambda is
sigma / sqrt(2).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from smoothctl import Noise, hookimpl

if TYPE_CHECKING:
    from torch import Tensor

    from smoothctl import Draws


def sample(shape: tuple[int, ...], sigma: float, draws: Draws) -> Tensor:
    """By the inverse of the distribution function, up to 16.6 lambda, where float32 ends."""
    u = draws.uniform(shape).mul_(2).sub_(1).clamp_min_(2.0**-24 - 1)
    return u.abs().neg_().log1p_().mul_(u.sign()).mul_(-sigma / math.sqrt(2))


def radius(p_lower: float, sigma: float) -> float:
    """The quantile at p_lower: moved by delta, the density changes by a factor of exp(|delta|_1 / lambda) at most."""
    return -sigma / math.sqrt(2) * math.log(2 * (1 - p_lower)) if p_lower < 1 else math.inf


def cdf(x: Any, sigma: float) -> Any:
    """The mass of either tail is exp(-|x| / lambda) / 2."""
    import mpmath

    tail = mpmath.exp(-abs(x) * mpmath.sqrt(2) / mpmath.mpf(sigma)) / 2
    return tail if x < 0 else 1 - tail


@hookimpl
def register_noises() -> list[Noise]:
    summary = "Laplace noise; certifies L1 radii (Teng et al. 2020)"
    return [Noise("laplace", sample, radius, norm="l1", cdf=cdf, summary=summary)]
