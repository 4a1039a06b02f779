"""Radii that earlier guarantees for Gaussian noise prove, at sigma 1 (Cohen et al. 2019, appendix I).

Both are a supremum over one parameter of a function with one peak; it is found on a grid, then by
golden sections. Every value of the parameter is valid, so a search that stops early only loses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smoothctl.reporting.frames import Floats

POINTS = 400
SECTIONS = 60
GOLDEN = (np.sqrt(5.0) - 1) / 2


def lecuyer(p_a: Floats, p_b: Floats) -> Floats:
    """Lecuyer et al. 2019 by differential privacy, [m] from p_A >= p_a > p_b >= p_B.

    sup over 0 < b <= min(1, ln(p_a/p_b)/2) of b / sqrt(2 ln(1.25 (1+e^b) / (p_a - e^2b p_b))).
    """
    top = np.minimum(1.0, 0.5 * np.log(p_a / p_b))

    def value(share: Floats) -> Floats:
        b = share * top
        gap = p_a - np.exp(2 * b) * p_b
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.log(1.25 * (1 + np.exp(b)) / gap)
            return np.where(gap > 0, b / np.sqrt(2 * inside), 0.0)

    return _largest(value, 0.0, 1.0, len(p_a))


def li(p_a: Floats, p_b: Floats) -> Floats:
    """Li et al. 2018 by Renyi divergence, [m] from p_A >= p_a > p_b >= p_B.

    sup over a > 1 of sqrt(-(2/a) ln(1 - p_a - p_b + 2 ((p_a^(1-a) + p_b^(1-a)) / 2)^(1/(1-a)))).
    """

    def value(log_excess: Floats) -> Floats:
        a = 1 + np.exp(log_excess)
        # In logarithms, since p_b^(1-a) leaves the range of floating point.
        mean = np.logaddexp((1 - a) * np.log(p_a), (1 - a) * np.log(p_b)) - np.log(2.0)
        inside = 1 - p_a - p_b + 2 * np.exp(mean / (1 - a))
        return np.asarray(np.sqrt(np.maximum(0.0, -(2 / a) * np.log(inside))))

    return _largest(value, -10.0, 8.0, len(p_a))


def _largest(value: Callable[[Floats], Floats], low: float, high: float, count: int) -> Floats:
    """The peak of each of ``count`` functions that are computed together."""
    grid = np.linspace(low, high, POINTS)
    best = np.argmax([value(np.full(count, point)) for point in grid], axis=0)
    left, right = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, POINTS - 1)]
    for _ in range(SECTIONS):
        inner, outer = right - GOLDEN * (right - left), left + GOLDEN * (right - left)
        rising = value(inner) < value(outer)
        left, right = np.where(rising, inner, left), np.where(rising, right, outer)
    return np.maximum(value((left + right) / 2), value(right))
