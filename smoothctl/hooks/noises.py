"""Additive noise, and which radius it proves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from smoothctl.base.draws import Draws


ABSTAIN = -1
"""What stands in the place of a class when the smoothed classifier abstains."""


@dataclass(frozen=True)
class Noise:
    """Additive noise with scale sigma, in units of pixels in [0,1].

    ``sample(shape, sigma, draws)`` draws a float32 tensor. ``radius(p_lower, sigma)`` is the radius
    in ``norm`` that the bound p_A >= p_lower >= 1/2 proves for the smoothed classifier;
    ``radius_pair(p_lower, runner_up, sigma)``, if there is one, what p_A >= p_lower and
    p_B <= runner_up <= p_lower for every other class B prove.

    ``cdf(x, sigma)``, if the coordinates are independent and alike, is P(one coordinate <= x), computed with mpmath
    from an mpmath number x: with it, images on a grid are certified in exact arithmetic (docs/certify.md).
    """

    name: str
    sample: Callable[[tuple[int, ...], float, Draws], Tensor]
    radius: Callable[[float, float], float]
    norm: str = "l2"
    radius_pair: Callable[[float, float, float], float] | None = None
    cdf: Callable[[Any, float], Any] | None = None
    summary: str = ""
    aliases: tuple[str, ...] = ()
