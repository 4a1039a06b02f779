"""The group-sequential test: known boundaries, exact size, and harmless futility."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from smoothctl_plugins.rules.expected_radius import PRIOR
from smoothctl_plugins.rules.group_sequential import (
    COST,
    Plan,
    boundary,
    is_futile,
    least_probability,
    plan_radii,
    schedule,
)

from smoothctl.hooks.registry import registry

GAUSSIAN = registry().find("noise", "gaussian").value
ALPHA = 0.001

# Computed independently, for these interim analyses and alpha = .001.
ANALYSES = (
    *(100, 200, 300, 400, 600, 800, 1100, 1500, 2000, 2600, 3400, 4500, 5900, 7700, 10100, 13200, 17200, 22400, 29200),
    *(38000, 49400, 64300, 83600, 100000),
)
KNOWN = {
    0: (31, 73, 117, 160, 250, 343, 484, 673, 911, 1199, 1584, 2118, 2800, 3679, 4855, 6379, 8348, 10913, 14275,
        18630, 24281, 31674, 41260, 49405),
    2: (-1, -1, -1, 0, 2, 4, 8, 14, 21, 31, 45, 65, 92, 126, 174, 236, 318, 426, 569, 756, 1000, 1323, 1742, 2100),
}  # fmt: skip


@pytest.mark.parametrize("z", KNOWN)
def test_boundaries_equal_known_ones(z: int) -> None:
    assert boundary(float(stats.norm.cdf(z)), ALPHA, ANALYSES) == KNOWN[z]


def test_the_last_boundary_is_never_easier_than_the_test_with_fixed_n() -> None:
    for z, fixed in ((0, 49510), (2, 2130), (3, 100)):
        assert boundary(float(stats.norm.cdf(z)), ALPHA, schedule(100_000))[-1] <= fixed


def size(p: float, bounds: tuple[int, ...], sizes: tuple[int, ...]) -> float:
    """P(ever crossing) by a recursion over single samples, which shares nothing with the code under test."""
    alive = np.zeros(sizes[-1] + 1)
    alive[0] = 1.0
    crossed, done = 0.0, 0
    for bound, stage in zip(bounds, sizes, strict=True):
        for _ in range(stage - done):
            alive[1:] = alive[1:] * p + alive[:-1] * (1 - p)
            alive[0] *= p
        done = stage
        if bound >= 0:
            crossed += float(alive[: bound + 1].sum())
            alive[: bound + 1] = 0.0
    return crossed


@pytest.mark.parametrize("n_max", [100, 1000, 3000])
@pytest.mark.parametrize("z", [0.0, 0.5, 1.0, 2.0, 2.5])
@pytest.mark.parametrize("alpha", [0.001, 0.05])
def test_size_is_at_most_alpha_at_and_below_the_threshold(n_max: int, z: float, alpha: float) -> None:
    sizes = schedule(n_max)
    p0 = float(stats.norm.cdf(z))
    bounds = boundary(p0, alpha, sizes)
    exact = size(p0, bounds, sizes)
    assert exact <= alpha * (1 + 1e-9)
    assert size(p0 - 0.01, bounds, sizes) <= exact
    if n_max == 3000 and z <= 1:
        assert exact >= 0.95 * alpha  # and it spends what it may


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 3.5), min_size=1, max_size=6, unique=True), st.sampled_from([0.12, 0.25, 1.0]))
def test_boundaries_do_not_grow_with_the_radius(zs: list[float], sigma: float) -> None:
    plan = plan_radii([sigma * z for z in sorted(zs)], lambda p: GAUSSIAN.radius(p, sigma), ALPHA, 10_000)
    for lower, higher in zip(plan.bounds, plan.bounds[1:], strict=False):
        assert all(after <= before for before, after in zip(lower, higher, strict=True))


@given(st.floats(0, 5), st.floats(0.05, 2))
def test_least_probability_inverts_the_radius(z: float, sigma: float) -> None:
    p = least_probability(lambda p: GAUSSIAN.radius(p, sigma), sigma * z)
    assert p == pytest.approx(stats.norm.cdf(z), abs=1e-12)
    assert GAUSSIAN.radius(p, sigma) >= sigma * z
    assert p == 0.5 or GAUSSIAN.radius(float(np.nextafter(p, 0)), sigma) < sigma * z


def test_sample_sizes_grow_and_end_at_the_limit() -> None:
    sizes = schedule(125_000)
    assert sizes[:12] == (10, 12, 15, 18, 22, 27, 33, 40, 48, 58, 70, 84)
    assert sizes[-1] == 125_000
    assert all(before < after for before, after in pairwise(sizes))
    assert schedule(7) == (7,)


def test_futility_sees_the_hopeless_and_spares_the_hopeful() -> None:
    plan: Plan = plan_radii([0.5], lambda p: GAUSSIAN.radius(p, 0.5), ALPHA, 100_000)
    assert is_futile(plan, 0, 100, 80, (100, 80))
    assert is_futile(plan, 0, 0, 0, (100, 80))  # before any copy of its own
    assert not is_futile(plan, 0, 0, 0, (1, 1))  # one copy says little
    assert not is_futile(plan, 0, 100, 0, (100, 0))
    assert not is_futile(plan, 0, 100, 15, (100, 15))  # p_A about .85 against a threshold of .841


@pytest.mark.parametrize("z", [0.0, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("n", [0, 100, 400, 5900])
def test_futility_gives_up_where_the_exact_predictive_distribution_would(z: float, n: int) -> None:
    plan = plan_radii([z], lambda p: GAUSSIAN.radius(p, 1.0), ALPHA, 20_000)
    expected = round(100 * stats.norm.sf(z))

    def worthless(failures: int, of_selection: int) -> bool:
        a, b = failures + of_selection + PRIOR[0], n + 100 - failures - of_selection + PRIOR[1]
        for later, bound in zip(plan.sizes, plan.bounds[0], strict=True):
            if later > n and stats.betabinom.cdf(bound - failures, later - n, a, b) >= COST * (later - n):
                return False
        return True

    def first(gives_up: Callable[[int, int], bool]) -> int:
        """The fewest failures at which it gives up; of the selection if there are no other samples."""
        return bisect_left(range(max(n, 100)), 1, key=lambda k: gives_up(k, expected) if n else gives_up(0, k))

    approximate = first(lambda failures, chosen: is_futile(plan, 0, n, failures, (100, chosen)))
    assert abs(approximate - first(worthless)) <= 1
