"""The same run under other settings: exact where it says so, against full enumeration and known values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from smoothctl.base.errors import UsageError
from smoothctl.reporting.measures import olderbounds, whatif
from tests.reporting.make import certified_frame, radius_frame

VOTES = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 2)), min_size=1, max_size=20)


def _frame(rows, **values):
    votes = [
        [k if place == top else (1000 - k if place == (top + 1) % 3 else 0) for place in range(3)] for k, top in rows
    ]
    return certified_frame(votes, [top for _, top in rows], **values)


@settings(deadline=None)
@given(VOTES, st.sampled_from([0.0001, 0.01, 0.05]))
def test_another_alpha_is_what_certify_would_have_said(rows, alpha):
    frame, wanted = _frame(rows), _frame(rows, alpha=alpha)
    again = whatif.at_alpha(frame, alpha)
    assert again.predict.tolist() == wanted.predict.tolist()
    assert again.radius == pytest.approx(wanted.radius, abs=1e-9)
    assert again.alpha == alpha
    assert whatif.at_alpha(frame, 0.001).radius == pytest.approx(frame.radius, abs=1e-11)


def test_without_votes_counts_come_from_the_radii():
    full = _frame([(1000, 0), (990, 1), (700, 2), (520, 0)])
    bare = radius_frame(full.radius.tolist(), full.predict.tolist(), full.label.tolist(), settings=dict(full.settings))
    assert whatif.counts(bare)[0].tolist() == [1000, 990, 700, -1]
    assert whatif.at_alpha(bare, 0.01).radius[:3] == pytest.approx(whatif.at_alpha(full, 0.01).radius[:3], abs=1e-9)


def test_thinning_has_the_distribution_of_a_smaller_sample():
    """Many images with the same count: their thinned certified accuracy is the hypergeometric tail."""
    count, n, less = 4000, 1000, 100
    frame = certified_frame([[930, 70]] * count, [0] * count, sigma=1.0)
    thin = whatif.thinned(frame, less)
    least = next(k for k in range(less + 1) if stats.beta.ppf(0.001, k, less - k + 1) >= stats.norm.cdf(0.9))
    chance = stats.hypergeom.sf(least - 1, n, 930, less)
    shown = float(np.mean(thin.radius >= 0.9))
    assert shown == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / count))
    assert set(thin.n.tolist()) == {less}
    assert thin.settings["n"] == less
    assert whatif.thinned(frame, less).radius.tolist() == thin.radius.tolist()


def test_thinning_to_the_same_size_changes_nothing():
    frame = _frame([(1000, 0), (700, 1), (520, 2)])
    assert whatif.thinned(frame, 1000).radius == pytest.approx(frame.radius, abs=1e-11)


def test_a_larger_n_is_labelled_a_projection():
    frame = _frame([(1000, 0), (700, 1)])
    more = whatif.apply(frame, "n", "100000")
    assert "PROJECTION" in more.note
    assert more.radius[0] == pytest.approx(0.5 * 3.81145656338995, rel=1e-11)
    assert more.radius[0] < 0.5 * 3.81145656338995
    assert "thinned" in whatif.apply(frame, "n", "100").note


KNOWN = [
    (0.6, 0.4, 0.2022162917, 0.0592236115), (0.7, 0.3, 0.4190701460, 0.1350361433),
    (0.8, 0.2, 0.6742226413, 0.2351601998), (0.9, 0.1, 1.0319295637, 0.3902671544),
    (0.95, 0.05, 1.3318664085, 0.4902680145), (0.99, 0.01, 1.9080090469, 0.5548667346),
    (0.999, 0.001, 2.5757396311, 0.5689114825), (0.9999, 0.0001, 3.1409393315, 0.5703133377),
    (0.6, 0.2, 0.4774294703, 0.1756358669), (0.8, 0.05, 1.1052445825, 0.4584355915),
]  # fmt: skip


@pytest.mark.parametrize(("p_a", "p_b", "li", "lecuyer"), KNOWN)
def test_older_bounds_known_values(p_a, p_b, li, lecuyer):
    a, b = np.array([p_a]), np.array([p_b])
    assert olderbounds.li(a, b)[0] == pytest.approx(li, abs=5e-10)
    assert olderbounds.lecuyer(a, b)[0] == pytest.approx(lecuyer, abs=5e-10)


@settings(deadline=None, max_examples=50)
@given(st.floats(0.501, 0.99999))
def test_older_bounds_are_below_cohens_and_equal_a_scalar_search(p):
    a, b = np.array([p]), np.array([1 - p])
    lecuyer, li = olderbounds.lecuyer(a, b)[0], olderbounds.li(a, b)[0]
    assert 0 < lecuyer < li < stats.norm.ppf(p)

    def minus_li(x):
        order = 1 + np.exp(x)
        inside = 1 - p - (1 - p) + 2 * (0.5 * (p ** (1 - order) + (1 - p) ** (1 - order))) ** (1 / (1 - order))
        return -np.sqrt(max(0.0, -2 / order * np.log(inside)))

    found = optimize.minimize_scalar(minus_li, bounds=(-8, np.log(60)), method="bounded", options={"xatol": 1e-10})
    assert li >= -found.fun - 1e-9


def test_a_bound_as_what_if_keeps_what_abstained():
    frame = _frame([(1000, 0), (700, 1), (520, 2)])
    old = whatif.apply(frame, "bound", "lecuyer2019")
    assert old.predict.tolist() == frame.predict.tolist()
    assert (old.radius[:2] < frame.radius[:2]).all()
    assert old.radius[2] == 0


@pytest.mark.parametrize(
    ("kind", "value", "line"),
    [
        ("alpha", "2", "between 0 and 1"),
        ("n", "0", "at least 1"),
        ("bound", "other", "choose"),
        ("alpha", "x", "not a number"),
    ],
)
def test_values_out_of_range_are_refused(kind, value, line):
    with pytest.raises(UsageError, match=line):
        whatif.apply(_frame([(900, 0)]), kind, value)


def test_what_cannot_be_known_is_refused():
    with pytest.raises(UsageError, match="it has no votes, and no sigma"):
        whatif.at_alpha(radius_frame([0.3], [1], [1]), 0.01)
    with pytest.raises(UsageError, match="stopped by the votes themselves"):
        whatif.at_alpha(radius_frame([0.5], [1], [1], settings={"rule": "radii"}), 0.01)
    with pytest.raises(UsageError, match="`bound=multi`"):
        whatif.at_alpha(_frame([(900, 0)], bound="multi"), 0.01)
    wrong = _frame([(900, 0)])
    wrong.radius[0] *= 1.1
    with pytest.raises(UsageError, match="do not follow"):
        whatif.at_alpha(wrong, 0.01)
    with pytest.raises(UsageError, match="n is not fixed"):
        whatif.thinned(_frame([(900, 0)], rule="budget"), 100)


@pytest.mark.parametrize(
    ("name", "acr"),
    [
        ("cohen_cifar10_resnet110_noise_0.25_sigma_0.25", 0.4232),
        ("cohen_cifar10_resnet110_noise_0.50_sigma_0.50", 0.5332),
        ("cohen_cifar10_resnet110_noise_1.00_sigma_1.00", 0.5389),
        ("cohen_imagenet_resnet50_noise_0.25_sigma_0.25", 0.4680),
        ("cohen_imagenet_resnet50_noise_0.50_sigma_0.50", 0.7198),
        ("cohen_imagenet_resnet50_noise_1.00_sigma_1.00", 0.8643),
    ],
)
def test_published_logs_at_the_alpha_of_the_paper(shared, name, acr):
    from smoothctl.reporting.measures import detection, metrics
    from smoothctl.reporting.reader import read_frame

    frame, _ = detection.detect(read_frame(shared / "data" / "logs" / f"{name}.tsv"))
    again = whatif.at_alpha(frame, 0.001)
    # The least count that three digits allow, where the published figure takes the nearest.
    assert acr - 2e-3 <= metrics.average_certified_radius(again) <= acr + 1e-4


def test_printed_radii_give_the_least_count_that_they_allow_and_say_for_how_many():
    full = _frame([(990, 0), (985, 1), (700, 2)])
    digits = np.array([float(f"{radius:.3g}") for radius in full.radius])
    bare = radius_frame(
        digits.tolist(), full.predict.tolist(), full.label.tolist(), settings=dict(full.settings, n=100_000)
    )
    k, _ = whatif.counts(bare)
    grid = {
        count: 0.5 * stats.norm.ppf(stats.beta.ppf(0.001, count, 100_000 - count + 1))
        for count in range(50_000, 100_000)
    }
    allowed = [
        [count for count, radius in grid.items() if abs(radius - shown) <= 0.5 * 10 ** (np.floor(np.log10(shown)) - 2)]
        for shown in digits
    ]
    assert k.tolist() == [min(counts) for counts in allowed]
    assert all(len(counts) > 1 for counts in allowed)
    assert "the least count for 3 that print several" in whatif.at_alpha(bare, 0.01).note


def test_projections_have_no_bounds_anywhere():
    from smoothctl.reporting import gates
    from smoothctl.reporting.measures.summary import summarise
    from smoothctl.reporting.output.tables import lower_bounds

    frame = _frame([(1000, 0), (700, 1)])
    more = whatif.apply(frame, "n", "100000")
    told = summarise(more, [0.0, 0.5])
    assert (told.lower_binomial, told.lower_bernstein) == (None, None)
    rows = lower_bounds([summarise(frame, [0.0]), told], [0.0], 0.001).rows
    assert {row[0].text for row in rows} == {frame.name}
    assert "a projection proves nothing" in str(gates.check(gates.parse("lcb@0.5>=0.1"), more, 0.001))


@pytest.mark.parametrize(("share", "shown"), [(0.99996, "99.99"), (1.0, "100.00"), (0.57, "57.00"), (0.0, "0.00")])
def test_lower_bounds_are_shown_rounded_down(share, shown):
    from smoothctl.reporting.output.cells import floored_percent

    assert floored_percent(share).text == shown
