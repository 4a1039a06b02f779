"""Uniform noise: an L1 radius of 2 * lambda * (p_A - 1/2), lambda half the width (Yang et al. 2020, table 1).

Sigma is the standard deviation of a coordinate, as in that paper, so that noises can be compared: lambda is
sqrt(3) * sigma.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from smoothctl import Noise, hookimpl

if TYPE_CHECKING:
    from torch import Tensor

    from smoothctl import Draws


def sample(shape: tuple[int, ...], sigma: float, draws: Draws) -> Tensor:
    """Draw from the cube [-lambda, lambda]^d."""
    return draws.uniform(shape).mul_(2).sub_(1).mul_(math.sqrt(3) * sigma)


def radius(p_lower: float, sigma: float) -> float:
    """The cube moved by delta keeps all but |delta|_1 / (2 lambda) of its mass, at least."""
    return 2 * math.sqrt(3) * sigma * (p_lower - 0.5)


def cdf(x: Any, sigma: float) -> Any:
    """(1 + x / lambda) / 2 within the cube."""
    import mpmath

    return min(mpmath.mpf(1), max(mpmath.mpf(0), (1 + x / (mpmath.sqrt(3) * mpmath.mpf(sigma))) / 2))


@hookimpl
def register_noises() -> list[Noise]:
    summary = "uniform in a cube; certifies L1 radii (Yang et al. 2020)"
    return [Noise("uniform", sample, radius, norm="l1", cdf=cdf, summary=summary)]
