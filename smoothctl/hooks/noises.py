"""Noise, and which radius it proves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smoothctl.base.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from smoothctl.base.draws import Draws


ABSTAIN = -1
"""What stands in the place of a class when the smoothed classifier abstains."""

NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}
"""Norms that a radius can be converted between, and their orders p."""


def stretch(norm: str, other: str, dimension: int) -> float:
    """The largest ``norm`` of a vector of ``dimension`` values that is 1 in the norm ``other``, rounded up.

    It is d^max(0, 1/p - 1/q) (Hoelder's inequality); a radius in ``norm``, divided by it, is one in ``other``. Raises
    UsageError for a norm of another kind.
    """
    for name in (norm, other):
        if name not in NORMS:
            raise UsageError(f"a radius in {norm} cannot be converted to one in {other}")
    excess = max(0.0, 1 / NORMS[norm] - 1 / NORMS[other])
    return math.nextafter(float(dimension) ** excess * (1 + 2.0**-50), math.inf) if excess else 1.0


def conversion(norm: str, other: str, dimension: int) -> str:
    """Say what was done to radii in ``norm`` that are given in ``other``; empty if nothing."""
    if norm == other:
        return ""
    return f"radii in {other.upper()} are {norm.upper()} radii divided by {stretch(norm, other, dimension):.4g}"


@dataclass(frozen=True)
class Values:
    """The values of a noise that has few, each as likely as the others, for images that are multiples of 1/levels.

    ``count(sigma, levels)`` says how many; ``part(shape, sigma, levels, start, draws)`` gives those from ``start`` on
    for the shape [N,C,H,W], where random numbers, the same ones for all images, may fix which they are;
    ``apply(x, part, sigma, levels)`` gives an image [C,H,W] under them. ``radius(first, second, sigma, levels)`` is
    what is certain, of images on the grid, if so many give the leading class and the next.
    """

    count: Callable[[float, int], int]
    part: Callable[[tuple[int, ...], float, int, int, Draws], Tensor]
    apply: Callable[[Tensor, Tensor, float, int], Tensor]
    radius: Callable[[int, int, float, int], float]


@dataclass(frozen=True)
class Noise:
    """Noise with scale sigma, in units of pixels in [0,1] where it is added.

    ``sample(shape, sigma, draws)`` draws a float32 tensor. It is added to the images, unless ``apply(x, drawn, sigma)``
    gives the noisy images [N,C,H,W] of images [C,H,W] or [N,C,H,W] and a draw [N,C,H,W]. ``radius(p_lower, sigma)``
    is the radius in ``norm`` that the bound p_A >= p_lower >= 1/2 proves for the smoothed classifier;
    ``radius_pair(p_lower, runner_up, sigma)``, if there is one, what p_A >= p_lower and
    p_B <= runner_up <= p_lower for every other class B prove.

    ``cdf(x, sigma)``, if the coordinates are independent and alike, is P(one coordinate <= x), computed with mpmath
    from an mpmath number x: with it, images on a grid are certified in exact arithmetic (docs/certify.md).

    ``for_shape(shape)``, if radii depend on the shape [C,H,W] of images, gives the noise with its radii for that
    shape. ``whole``: nothing is rounded, neither noisy images, which hold pixels as they are, nor radii, which are
    whole numbers. ``values``: of images on a grid, all values of the noise are evaluated instead of drawing some.
    """

    name: str
    sample: Callable[[tuple[int, ...], float, Draws], Tensor]
    radius: Callable[[float, float], float]
    norm: str = "l2"
    radius_pair: Callable[[float, float, float], float] | None = None
    cdf: Callable[[Any, float], Any] | None = None
    apply: Callable[[Tensor, Tensor, float], Tensor] | None = None
    for_shape: Callable[[tuple[int, ...]], Noise] | None = None
    whole: bool = False
    values: Values | None = None
    summary: str = ""
    aliases: tuple[str, ...] = ()

    def at(self, shape: Sequence[int]) -> Noise:
        """The same noise with its radii for images of a shape [C,H,W]."""
        return self if self.for_shape is None else self.for_shape(tuple(shape))

    def noisy(self, x: Tensor, drawn: Tensor, sigma: float) -> Tensor:
        """Images under a draw [N,C,H,W]: the sum, unless the noise says otherwise. Nothing is clipped."""
        return x + drawn if self.apply is None else self.apply(x, drawn, sigma)
