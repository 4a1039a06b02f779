"""Bounds that are proved: against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smoothctl.smoothing.bounds import clopper_pearson_lower
from smoothctl.smoothing.tails import proven_lower, proven_lowers, proven_upper, tail


def exact_tail(k: int, n: int, p: float) -> Fraction:
    q = Fraction(p)
    return sum((Fraction(math.comb(n, j)) * q**j * (1 - q) ** (n - j) for j in range(k, n + 1)), Fraction(0))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 120), st.sampled_from([1e-12, 0.001, 0.05, 0.49]))
def test_the_lower_bound_is_proved_and_the_largest(data: st.DataObject, n: int, alpha: float) -> None:
    k = data.draw(st.integers(1, n))
    bound = proven_lower(k, n, alpha)
    assert exact_tail(k, n, bound) <= Fraction(alpha)
    assert exact_tail(k, n, bound) > Fraction(alpha) * Fraction(1 - 1e-9)
    assert exact_tail(k, n, bound) <= Fraction(tail(k, n, bound))
    assert 1 - Fraction(proven_upper(n - k, n, alpha)) <= Fraction(bound)


@pytest.mark.parametrize("n", [100_000, 10_000_000, 1_000_000_000])
@pytest.mark.parametrize("share", [0.5006, 0.9, 0.9999, 1.0])
def test_large_samples_keep_the_published_bound_to_ten_digits(n: int, share: float) -> None:
    k = round(n * share)
    assert proven_lower(k, n, 0.001) == pytest.approx(clopper_pearson_lower(k, n, 0.001), rel=1e-10)
    assert tail(k, n, proven_lower(k, n, 0.001)) <= 0.001


def test_edges() -> None:
    assert proven_lower(0, 10, 0.001) == 0.0
    assert proven_upper(10, 10, 0.001) == 1.0
    assert proven_lower(10**9, 10**9, 1 - 1e-16) < 1.0
    np.testing.assert_array_equal(
        proven_lowers(np.array([5, 9, 5]), np.array([10, 10, 10]), 0.01),
        [proven_lower(5, 10, 0.01), proven_lower(9, 10, 0.01), proven_lower(5, 10, 0.01)],
    )
