"""Splitting: an L1 radius without any sampling (Levine and Feizi, ICML 2021, "Improved, deterministic smoothing for L1
certified robustness", theorems 2 and 3).

A pixel x shows only between which of the numbers s + 2 lambda k it lies, as the middle of those two within [0,1]. On a
grid of 1/q there are N = 2 lambda q places for s. Each pixel has an offset of its own, drawn once for all images, and
all move together, so that N images are all that there are. Sigma is that of uniform noise, lambda = sqrt(3) sigma.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smoothctl import Noise, Values, hookimpl

if TYPE_CHECKING:
    from torch import Tensor

    from smoothctl import Draws


def width(sigma: float) -> float:
    return 2 * math.sqrt(3) * sigma


def count(sigma: float, levels: int) -> int:
    return max(1, round(width(sigma) * levels))


def middle(x: Tensor, s: Tensor, period: float, top: float) -> Tensor:
    """Twice the middle of the part of [0, top] between two neighbours of s + period * k in which x lies."""
    below = s + (x - s).div(period, rounding_mode="floor") * period
    return below.clamp(min=0) + (below + period).clamp(max=top)


def sample(shape: tuple[int, ...], sigma: float, draws: Draws) -> Tensor:
    """Places in [0, 2 lambda), each pixel's its own."""
    return draws.uniform(shape).mul_(width(sigma))


def apply(x: Tensor, s: Tensor, sigma: float) -> Tensor:
    return middle(x, s, width(sigma), 1.0) / 2


def part(shape: tuple[int, ...], sigma: float, levels: int, start: int, draws: Draws) -> Tensor:
    """Places half way between grid points, in units of 1/(2 q): odd numbers below 2 N."""
    import torch

    whole = count(sigma, levels)
    offsets = draws.integers(0, whole, (1, *shape[1:]))
    steps = torch.arange(start, start + shape[0], device=offsets.device).view(-1, *[1] * (len(shape) - 1))
    return (offsets + steps) % whole * 2 + 1


def apply_part(x: Tensor, s: Tensor, sigma: float, levels: int) -> Tensor:
    """In whole numbers, divided once, so that a pixel shows exactly the same wherever in its part it lies."""
    on_grid = (x * levels).round().long() * 2
    return middle(on_grid, s, 2 * count(sigma, levels), 2 * levels) / (4.0 * levels)


def radius(p_lower: float, sigma: float) -> float:
    """Theorem 2, for places that are drawn: delta < 2 lambda (p_A - 1/2)."""
    return width(sigma) * (p_lower - 0.5)


def certain(first: int, second: int, sigma: float, levels: int) -> float:
    """The largest delta on the grid with first - delta q > second + delta q: a pixel that moves by 1/q is told apart in
    one of the N images."""
    return (first - second - 1) // 2 / levels


@hookimpl
def register_noises() -> list[Noise]:
    values = Values(count, part, apply_part, certain)
    summary = "splits pixels; certifies L1 radii, on a grid without sampling (Levine and Feizi 2021)"
    return [Noise("split", sample, radius, norm="l1", apply=apply, values=values, summary=summary)]
