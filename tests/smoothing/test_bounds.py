"""Bounds against known answers, other libraries and exact identities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from smoothctl.base.errors import UsageError
from smoothctl.smoothing.bounds import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    least_n_to_certify,
    least_n_to_predict,
    top_two_p_value,
)

# k, n, lower bound at alpha = .001, computed with 40 digits.
KNOWN = [
    (1, 1, 0.001),
    (1, 10, 0.00010004502852067863),
    (5, 10, 0.089813189811854266),
    (9, 10, 0.37627691091117457),
    (10, 10, 0.50118723362727229),
    (80, 100, 0.65355727128938052),
    (99, 100, 0.91137311129604243),
    (100, 100, 0.93325430079699104),
    (550, 1000, 0.50067596009255776),
    (900, 1000, 0.86746401802574832),
    (1000, 1000, 0.99311604842093377),
    (9900, 10000, 0.98653115932380618),
    (10000, 10000, 0.99930946300258992),
    (50489, 100000, 0.49999894848863553),
    (50490, 100000, 0.50000894877440356),
    (75000, 100000, 0.74574684213556671),
    (90000, 100000, 0.89703649622382911),
    (99000, 100000, 0.98898934037747476),
    (99900, 100000, 0.99865099244675306),
    (99990, 100000, 0.99975867734359116),
    (99999, 100000, 0.99990766966626545),
    (100000, 100000, 0.99993092483300939),
]

counts = st.integers(1, 200_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
alphas = st.floats(1e-9, 0.5)


@pytest.mark.parametrize(("k", "n", "bound"), KNOWN)
def test_lower_bound_equals_known_values(k: int, n: int, bound: float) -> None:
    assert clopper_pearson_lower(k, n, 0.001) == pytest.approx(bound, rel=1e-13)


def test_bounds_at_the_edges() -> None:
    assert clopper_pearson_lower(0, 1000, 0.001) == 0.0
    assert clopper_pearson_upper(1000, 1000, 0.001) == 1.0
    # Two-sided at 1e-7, which a library once got wrong.
    assert clopper_pearson_upper(0, 1000, 0.5e-7) == pytest.approx(0.0166707224, rel=1e-8)
    for n in (1, 10, 100, 100_000):
        assert clopper_pearson_lower(n, n, 1e-3) == pytest.approx(1e-3 ** (1 / n), rel=1e-14)


def test_bound_is_one_sided() -> None:
    assert clopper_pearson_lower(99000, 100000, 0.001) == pytest.approx(0.98898934, abs=5e-9)


@given(counts, alphas)
def test_lower_bound_is_the_reference_implementation_bit_for_bit(pair: tuple[int, int], alpha: float) -> None:
    k, n = pair
    if k > 0:
        assert clopper_pearson_lower(k, n, alpha) == proportion_confint(k, n, alpha=2 * alpha, method="beta")[0]


@given(counts, alphas)
def test_lower_bound_solves_its_defining_equation(pair: tuple[int, int], alpha: float) -> None:
    k, n = pair
    if k > 0:
        assert stats.binom.sf(k - 1, n, clopper_pearson_lower(k, n, alpha)) == pytest.approx(alpha, rel=1e-6)


@given(counts, alphas)
def test_bounds_mirror_each_other_and_enclose_the_share(pair: tuple[int, int], alpha: float) -> None:
    k, n = pair
    lower, upper = clopper_pearson_lower(k, n, alpha), clopper_pearson_upper(k, n, alpha)
    assert upper == pytest.approx(1 - clopper_pearson_lower(n - k, n, alpha), abs=1e-12)
    assert lower <= k / n <= upper


@given(st.integers(1, 5000), alphas)
def test_lower_bound_grows_with_votes(n: int, alpha: float) -> None:
    bounds = clopper_pearson_lower(np.arange(n + 1), n, alpha)
    assert np.all(np.diff(bounds) > 0)


@pytest.mark.parametrize(("k", "n", "alpha"), [(3, 2, 0.1), (-1, 2, 0.1), (0, 0, 0.1), (1, 2, 0.0), (1, 2, 1.0)])
def test_bounds_refuse_nonsense(k: int, n: int, alpha: float) -> None:
    with pytest.raises(UsageError):
        clopper_pearson_lower(k, n, alpha)


@pytest.mark.parametrize(
    ("first", "second", "p_value"),
    [
        (60, 40, 0.05688793364098089),
        (66, 34, 0.00178993039),
        (67, 33, 0.00087371984),
        (10, 0, 0.001953125),
        (11, 0, 0.0009765625),
        (600, 400, 2.728464156e-10),
        (50, 50, 1.0),
        (0, 0, 1.0),
    ],
)
def test_top_two_p_value_equals_known_values(first: int, second: int, p_value: float) -> None:
    assert top_two_p_value(first, second) == pytest.approx(p_value, rel=1e-8)
    assert top_two_p_value(second, first) == top_two_p_value(first, second)


@given(st.integers(0, 20_000), st.integers(0, 20_000))
def test_top_two_p_value_is_scipys_binomial_test(first: int, second: int) -> None:
    if first + second:
        expected = stats.binomtest(first, first + second, 0.5).pvalue
        assert top_two_p_value(first, second) == pytest.approx(expected, rel=1e-9)


def test_least_n() -> None:
    assert least_n_to_certify(0.001) == 10
    assert least_n_to_predict(0.001) == 11


@given(st.floats(1e-12, 0.999))
def test_least_n_is_least(alpha: float) -> None:
    n = least_n_to_certify(alpha)
    assert clopper_pearson_lower(n, n, alpha) >= 0.5 - 1e-12
    assert n == 1 or clopper_pearson_lower(n - 1, n - 1, alpha) < 0.5
    n = least_n_to_predict(alpha)
    assert top_two_p_value(n, 0) <= alpha
    assert n == 1 or top_two_p_value(n - 1, 0) > alpha
