"""Exact arithmetic for images on a grid (Voracek and Hein, ICLR 2023): what is certified is what was computed.

Pixels are multiples of 1/levels. Noise is rounded to the grid, which makes it an integer with computed
probabilities; it is added in integers, and the sum becomes a float once. So the classifier behind a rounding to
the grid is evaluated exactly under real noise, and theorems on real noise hold for it. docs/certify.md proves it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import mpmath
import torch
from torch import Tensor

from smoothctl.base.draws import Draws
from smoothctl.base.errors import SmoothctlError
from smoothctl.base.thresholds import Thresholds
from smoothctl.hooks.noises import Noise, stretch
from smoothctl.smoothing.tails import lowered

WORD = 2**64
"""A draw compares a uniform integer below this with thresholds."""
PRECISION = 96
"""Bits of the arithmetic in which laws are computed."""
MOST_THRESHOLDS = 2**17
"""A law that needs more than this (a very fine grid, a very large sigma) takes too long to compute."""


@dataclass(frozen=True)
class Arithmetic:
    """How noise of one sigma is drawn and added: exactly, to pixels that are multiples of 1/``levels``, or in
    floating point (None), where a noise that rounds nothing is exact too."""

    noise: Noise
    sigma: float
    levels: int | None = None

    @property
    def name(self) -> str:
        """As logs name it."""
        if self.values:
            return f"exact, all {self.values} values of the noise"
        if self.noise.whole:
            return "exact, nothing is rounded"
        return f"exact, grid 1/{self.levels}" if self.levels else "float"

    @cached_property
    def law(self) -> Thresholds | None:
        """The law of a coordinate in steps of the grid; None in floating point."""
        return grid_law(self.noise, self.sigma, self.levels) if self.levels else None

    @property
    def values(self) -> int:
        """How many values the noise has; 0 where it is drawn."""
        return self.noise.values.count(self.sigma, self.levels) if self.levels and self.noise.values else 0

    def hold(self, x: Tensor, name: str = "the image") -> Tensor:
        """An image [C,H,W] on a CPU, as noise is added to it: integers on a grid, else floats.

        Raises SmoothctlError for an image that is not on the grid.
        """
        if not self.levels:
            return x
        if not is_on_grid(x, self.levels):
            raise SmoothctlError(f"{name} has pixels that are no multiples of 1/{self.levels}, unlike the first image")
        if self.values:
            return x
        assert self.law is not None
        fits = self.levels + self.law.reach < torch.iinfo(torch.int16).max
        return (x * self.levels).round().to(torch.int16 if fits else torch.int32)

    def sample(self, shape: tuple[int, ...], draws: Draws) -> Tensor:
        """Noise of a shape, for ``add`` to what ``hold`` gave."""
        return self.noise.sample(shape, self.sigma, draws) if self.law is None else draws.ranks(self.law, shape)

    def part(self, shape: tuple[int, ...], start: int, draws: Draws) -> Tensor:
        """The values of the noise from one on, for ``add``."""
        assert self.levels is not None
        assert self.noise.values is not None
        return self.noise.values.part(shape, self.sigma, self.levels, start, draws)

    def radius(self, first: int, second: int) -> float:
        """What all values prove, of which so many give the leading class and the next."""
        assert self.levels is not None
        assert self.noise.values is not None
        return self.noise.values.radius(first, second, self.sigma, self.levels)

    def add(self, x: Tensor, noise: Tensor, out: Tensor) -> None:
        """Write x + noise, as pixels in float32, into ``out``: one conversion, so that equal sums give equal inputs.

        A noise that is not added is applied in its own way.
        """
        if self.values:
            assert self.levels is not None
            assert self.noise.values is not None
            out.copy_(self.noise.values.apply(x, noise, self.sigma, self.levels))
        elif self.law is not None:
            assert self.levels is not None
            torch.div(torch.add(x, noise), self.levels, out=out)
        elif self.noise.apply is not None:
            out.copy_(self.noise.apply(x, noise, self.sigma))
        else:
            torch.add(x, noise, out=out)

    def distance(self, dimension: int) -> float:
        """Bound on the total variation between the noise that is drawn and the law, for images of so many pixels.

        With the same uniform number for both, a coordinate differs only where that number lies between a threshold
        and its true place, 2^-65 at most for each, or beyond the last ones. 0 in floating point, where none is known.
        """
        return 0.0 if self.law is None else dimension * (len(self.law) + 2) * 2.0**-64


@lru_cache(maxsize=32)
def grid_law(noise: Noise, sigma: float, levels: int) -> Thresholds | None:
    """The law of a coordinate of the noise, rounded to multiples of 1/levels; None if it cannot be had exactly.

    Thresholds are 2^64 P(coordinate <= (j + 1/2) / levels), rounded, for all j where that is not 0 or 2^64.
    """
    cdf = noise.cdf
    if cdf is None:
        return None

    def threshold(j: int) -> int:
        return int(mpmath.nint(WORD * cdf(mpmath.mpf(2 * j + 1) / (2 * levels), sigma)))

    with mpmath.workprec(PRECISION):
        lowest = _first(lambda j: threshold(j) >= 1)
        beyond = _first(lambda j: threshold(j) >= WORD)
        if not 0 < beyond - lowest <= MOST_THRESHOLDS:
            return None
        return Thresholds(lowest, [threshold(j) for j in range(lowest, beyond)])


def _first(holds: Any) -> int:
    """The least integer from which a condition holds that holds from some integer on (within 2^40 of 0)."""
    reach = 1
    while (holds(-reach) or not holds(reach)) and reach < 2**40:
        reach *= 2
    low, high = -reach, reach
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def arithmetic_for(noise: Noise, sigma: float, levels: int | None) -> Arithmetic:
    """Exact arithmetic where images are on a grid and the noise has a law there, else floating point."""
    exact = Arithmetic(noise, sigma, levels)
    return exact if exact.values or exact.law is not None else Arithmetic(noise, sigma)


def is_on_grid(x: Tensor, levels: int) -> bool:
    """Whether all pixels of an image on a CPU are the float32 numbers next to multiples of 1/levels."""
    return bool(torch.equal((x * levels).round().div(levels), x))


def proving(noise: Noise, distance: float) -> Noise:
    """The same noise, with radii that hold although probabilities are off by ``distance`` and numbers are rounded.

    A radius is lowered by a margin, unless it is a whole number, and where the noise states its law, until
    P(coordinate <= radius) <= p_lower in high precision: for Gaussian noise that is theorem 1 of Cohen et al. 2019
    itself; any other noise with a larger radius would be refuted by a half-space.
    """

    @lru_cache(maxsize=4096)
    def proved_radius(p_lower: float, sigma: float) -> float:
        proved = math.nextafter(p_lower - distance, -1.0) if distance else p_lower
        if proved < 0.5:
            return -1.0
        radius = noise.radius(proved, sigma)
        least = radius if noise.whole else float(lowered(radius, sigma))
        with mpmath.workprec(PRECISION):
            while noise.cdf is not None and least > 0 and noise.cdf(mpmath.mpf(least), sigma) > proved:
                least = float(lowered(least, sigma))
        return least

    def radius_pair(p_lower: float, runner_up: float, sigma: float) -> float:
        assert noise.radius_pair is not None
        proved, other = p_lower, runner_up
        if distance:
            proved, other = math.nextafter(p_lower - distance, -1.0), math.nextafter(runner_up + distance, 2.0)
        if proved < other:
            return -1.0
        radius = noise.radius_pair(proved, other, sigma)
        return radius if noise.whole else float(lowered(radius, sigma))

    return replace(noise, radius=proved_radius, radius_pair=noise.radius_pair and radius_pair)


def in_norm(noise: Noise, norm: str | None, dimension: int) -> Noise:
    """The same noise with its radii in another norm, for images of ``dimension`` values; rounded down."""
    if norm in (None, noise.norm):
        return noise
    divisor = stretch(noise.norm, str(norm), dimension)
    own, pair = noise.radius, noise.radius_pair

    def converted(radius: float) -> float:
        return math.nextafter(radius / divisor, -math.inf)

    return replace(
        noise, norm=str(norm), radius=lambda p, sigma: converted(own(p, sigma)), cdf=None,
        radius_pair=pair and (lambda p, other, sigma: converted(pair(p, other, sigma))),
    )  # fmt: skip
