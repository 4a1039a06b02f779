"""Gaussian noise: an L2 radius of sigma * Phi^-1(p_A) (Cohen et al. 2019, theorem 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scipy.special import ndtri

from smoothctl import Noise, hookimpl

if TYPE_CHECKING:
    from torch import Tensor

    from smoothctl import Draws


def sample(shape: tuple[int, ...], sigma: float, draws: Draws) -> Tensor:
    """Draw from N(0, sigma^2 I)."""
    return draws.normal(shape).mul_(sigma)


def radius(p_lower: float, sigma: float) -> float:
    """The radius with the runner-up bounded by 1 - p_lower: sigma * Phi^-1(p_lower)."""
    return sigma * float(ndtri(p_lower))


def radius_pair(p_lower: float, runner_up: float, sigma: float) -> float:
    """The radius of theorem 1 in full: sigma / 2 * (Phi^-1(p_lower) - Phi^-1(runner_up))."""
    return sigma / 2 * float(ndtri(p_lower) - ndtri(runner_up))


def cdf(x: Any, sigma: float) -> Any:
    """Phi(x / sigma)."""
    import mpmath

    return mpmath.ncdf(x / mpmath.mpf(sigma))


@hookimpl
def register_noises() -> list[Noise]:
    summary = "N(0, sigma^2 I); certifies L2 radii (Cohen et al. 2019)"
    return [Noise("gaussian", sample, radius, norm="l2", radius_pair=radius_pair, cdf=cdf, summary=summary)]
