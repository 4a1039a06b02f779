"""Measures against independent computations, known values, and exact enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from smoothctl.reporting.measures import metrics
from smoothctl.reporting.measures.summary import class_summaries, summarise
from tests.reporting.make import certified_frame, radius_frame

ROWS = st.lists(
    st.tuples(st.floats(0, 4, allow_nan=False), st.integers(-1, 2), st.integers(0, 2)), min_size=1, max_size=40
)


@given(ROWS, st.lists(st.floats(0, 4), min_size=1, max_size=5))
def test_certified_accuracy_acr_and_abstention_by_hand(rows, radii):
    frame = radius_frame(
        [0.0 if predict < 0 else radius for radius, predict, _ in rows],
        [predict for _, predict, _ in rows],
        [label for *_, label in rows],
    )
    right = [radius for radius, predict, label in rows if predict >= 0 and predict == label]
    expected = [sum(value >= radius for value in right) / len(rows) for radius in radii]
    assert metrics.certified_accuracy(frame, radii) == pytest.approx(expected)
    assert metrics.average_certified_radius(frame) == pytest.approx(sum(right) / len(rows))
    summary = summarise(frame, radii)
    assert summary.abstained == pytest.approx(sum(predict < 0 for _, predict, _ in rows) / len(rows))
    assert summary.accuracy == pytest.approx(len(right) / len(rows))
    assert sum(part.images for part in summary.classes) == len(rows)


def test_abstentions_and_wrong_classes_stay_in_the_denominator():
    frame = radius_frame([0.6, 0.1, 0.0, 0.9], [3, 3, -1, 5], [3, 3, 3, 3])
    assert metrics.certified_accuracy(frame, [0, 0.25, 0.5]) == (0.5, 0.25, 0.25)
    assert metrics.average_certified_radius(frame) == pytest.approx(0.175)


def test_a_radius_is_not_counted_above_what_was_proved():
    cap = 0.5 * stats.norm.ppf(0.001**1e-5)
    frame = radius_frame([cap], [1], [1])
    assert metrics.certified_accuracy(frame, [1.9057, 1.906, 1.91]) == (1.0, 0.0, 0.0)


def test_radius_zero_counts_as_right_at_radius_zero():
    assert metrics.certified_accuracy(radius_frame([0.0], [2], [2]), [0.0, 1e-12]) == (1.0, 0.0)


@given(st.integers(1, 2000), st.data())
def test_intervals_equal_statsmodels(total, data):
    count = data.draw(st.integers(0, total))
    low, high = proportion_confint(count, total, alpha=0.05, method="beta")
    assert metrics.interval(count, total) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(
    ("total", "bernstein", "exact"), [(500, 0.01086, 0.008), (1000, 0.00702, 0.005), (10_000, 0.00241, 0.0021)]
)
def test_appendix_d_known_penalties(total, bernstein, exact):
    assert 1 - metrics.bernstein_lower(total, total, 0.001, 0.001) == pytest.approx(bernstein, abs=5e-6)
    assert 1 - metrics.binomial_lower(total, total, 0.001, 0.001) == pytest.approx(exact, abs=1e-9)


def _failure(total: int, alpha: float, penalty: float) -> float:
    """Exact probability that more claims are wrong than the penalty allows, at worst: E ~ Binomial(m, alpha)."""
    return float(stats.binom.sf(math.floor(penalty * total + 1e-9), total, alpha))


@pytest.mark.parametrize("rho", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("alpha", [0.0001, 0.001, 0.01, 0.1])
@pytest.mark.parametrize("total", [10, 60, 500, 1000, 10_000])
def test_appendix_d_fails_no_more_often_than_rho(total, alpha, rho):
    for bound in (metrics.bernstein_lower, metrics.binomial_lower):
        assert _failure(total, alpha, 1 - bound(total, total, alpha, rho)) <= rho * (1 + 1e-9)


def test_appendix_d_without_its_factor_fails_more_often():
    total, alpha, rho = 10_000, 0.001, 0.001
    log = math.log(1 / rho)
    penalty = alpha + math.sqrt(alpha * (1 - alpha) * log / total) + log / (3 * total)
    assert _failure(total, alpha, penalty) == pytest.approx(1.58e-3, rel=0.01)


def test_the_bound_covers_when_claims_are_enumerated():
    """Sum over all outcomes of eight images, of which three are not robust and are claimed with probability alpha."""
    total, bad, alpha, rho = 8, 3, 0.2, 0.1
    wrong = 0.0
    for claims in range(2**bad):
        made = bin(claims).count("1")
        chance = alpha**made * (1 - alpha) ** (bad - made)
        wrong += chance * (metrics.binomial_lower(total - bad + made, total, alpha, rho) > (total - bad) / total)
    assert wrong <= rho


@settings(max_examples=20)
@given(st.lists(st.sampled_from([0.0, 0.3, 0.7, 1.9]), min_size=30, max_size=200))
def test_bootstrap_interval_agrees_with_scipy(values):
    array = np.array(values)
    low, high = metrics.mean_interval(array)
    spread = array.std() / math.sqrt(len(array))
    reference = stats.bootstrap(
        (array,), np.mean, method="percentile", n_resamples=2000, random_state=np.random.default_rng(1)
    ).confidence_interval if array.std() else (array.mean(), array.mean())  # fmt: skip
    assert (low, high) == pytest.approx(tuple(reference), abs=0.35 * spread + 1e-12)


def test_p_of_the_label_needs_votes():
    frame = certified_frame([[0, 10, 90], [70, 20, 10]], [2, 1])
    assert metrics.label_probabilities(frame) == pytest.approx([0.9, 0.2])
    assert metrics.label_probabilities(radius_frame([0.1], [1], [1])) is None


def test_smoothed_accuracy_asks_for_the_leading_class_only():
    frame = certified_frame([[51, 49], [49, 51], [100, 0]], [0, 0, 0])
    assert metrics.smoothed_accuracy(frame) == pytest.approx(2 / 3)
    assert summarise(frame, [0.0]).accuracy == pytest.approx(1 / 3)


def test_constant_classifier_and_cost():
    frame = certified_frame([[100, 0], [100, 0], [0, 100]], [0, 0, 1], sigma=0.25)
    assert metrics.constant_acr(frame) == pytest.approx(2 / 3 * 0.25 * 1.50047502412064)
    assert metrics.evaluations(frame) == 200


def test_classes_have_names_and_add_up():
    frame = certified_frame([[100, 0], [60, 40], [0, 100], [100, 0]], [0, 0, 1, 1])
    first, second = class_summaries(frame, [0.0, 0.5])
    assert (first.images, first.certified, first.abstained) == (2, (0.5, 0.5), 0.5)
    assert (second.images, second.certified, second.abstained) == (2, (0.5, 0.5), 0.0)


def test_no_acr_where_rows_prove_membership_only():
    frame = radius_frame([0.5, 0.25], [1, 1], [1, 1], settings={"rule": "radii", "radii": [0.25, 0.5], "alpha": 0.001})
    summary = summarise(frame, [0.25, 0.5])
    assert summary.acr is None
    assert "grid of radii" in summary.acr_reason
    assert summary.certified == (1.0, 0.5)
    assert metrics.default_radii([frame]) == (0.25, 0.5)


def test_failed_images_count_as_not_certified(tmp_path):
    from smoothctl.records.log import CERTIFY_COLUMNS
    from smoothctl.reporting.measures import whatif
    from smoothctl.reporting.reader import read_frame
    from tests.reporting.make import write_log

    p = float(stats.beta.ppf(0.001, 100, 1))
    good = f"0 1 1 {0.5 * float(stats.norm.ppf(p))!r} 1 0.5 1 {p!r} 100 1:100 1:10 certified a ok"
    failed = "5 -1 -1 0.0 0 0.0 -1 0.0 0    b failed"
    path = write_log(tmp_path / "log.tsv", [good, failed], "\t".join(CERTIFY_COLUMNS))
    path.with_suffix(".json").write_text(
        '{"settings": {"sigma": 0.5, "n": 100, "n0": 10, "alpha": 0.001}, "planned": 2}'
    )
    frame = read_frame(path)
    summary = summarise(frame, [0.0, 0.5])
    assert (summary.failed, summary.abstained, summary.certified) == (1, 0.0, (0.5, 0.5))
    assert summary.label_probability["mean"] == 1.0
    assert [part.label for part in summary.classes] == [1]
    again = whatif.at_alpha(frame, 0.01)
    assert again.predict.tolist() == [1, -1]
    assert again.radius[0] > frame.radius[0]
    assert not whatif.thinned(frame, 50).correct[1]
