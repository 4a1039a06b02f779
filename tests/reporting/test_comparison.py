"""Paired comparisons and envelopes against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar

from smoothctl.base.errors import SmoothctlError
from smoothctl.reporting import sources
from smoothctl.reporting.assemble import assemble
from smoothctl.reporting.measures import comparison
from tests.reporting.make import certified_frame, radius_frame

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=120)


@given(PAIRS)
def test_mcnemar_equals_statsmodels(pairs):
    first, second = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    table = [
        [int((first & second).sum()), int((first & ~second).sum())],
        [int((~first & second).sum()), int((~first & ~second).sum())],
    ]
    found = comparison.difference_of_shares(first, second)
    wanted = mcnemar(table, exact=True).pvalue if table[0][1] + table[1][0] else 1.0
    assert found.p_value == pytest.approx(wanted)
    assert found.difference == pytest.approx(second.mean() - first.mean())
    assert -1 <= found.low <= found.high <= 1


def test_the_interval_covers_when_pairs_are_enumerated():
    """Exact coverage of Agresti and Min's interval on 30 pairs, by enumerating the discordant counts."""
    from scipy import stats

    total, gain, loss = 30, 0.2, 0.1
    covered = 0.0
    for gained in range(total + 1):
        for lost in range(total + 1 - gained):
            chance = stats.multinomial.pmf([gained, lost, total - gained - lost], total, [gain, loss, 1 - gain - loss])
            second = np.array([True] * gained + [False] * (total - gained))
            first = np.array([False] * gained + [True] * lost + [False] * (total - gained - lost))
            found = comparison.difference_of_shares(first, second)
            covered += chance * (found.low <= gain - loss <= found.high)
    assert covered >= 0.94


def test_only_shared_images_are_compared():
    first = radius_frame([0.5, 0.1, 0.9], [1, 1, 1], [1, 1, 1], idx=[0, 20, 40])
    second = radius_frame([0.6, 0.7], [1, 1], [1, 1], idx=[20, 60], name="two")
    found = comparison.compare(first, second, [0.5])
    assert (found.images, found.certified[0].difference) == (1, 1.0)
    assert found.acr.difference == pytest.approx(0.5)
    assert found.paired


def test_logs_without_shared_images_are_compared_as_samples():
    random = np.random.default_rng(0)
    first, second = (
        radius_frame(random.uniform(0, high, 200).tolist(), [1] * 200, [1] * 200, idx=range(start, start + 200))
        for high, start in ((0.6, 0), (1.2, 1000))
    )
    found = comparison.compare(first, second, [0.5])
    assert (found.paired, found.images) == (False, 400)
    wanted = float(np.mean(second.radius >= 0.5) - np.mean(first.radius >= 0.5))
    (part,) = found.certified
    assert part.difference == pytest.approx(wanted)
    assert part.low < wanted < part.high
    assert part.p_value < 1e-6
    assert found.acr.low < found.acr.difference < found.acr.high


def test_p_values_are_adjusted_for_all_tests_together():
    frames = [
        radius_frame(np.random.default_rng(seed).uniform(0, 1, 100).tolist(), [1] * 100, [1] * 100, name=str(seed))
        for seed in range(3)
    ]
    compared, failures = comparison.compare_all(frames, [0.25, 0.5])
    tests = [part for each in compared for part in (*each.certified, each.acr)]
    ordered = sorted(tests, key=lambda part: part.p_value)
    largest = 0.0
    for place, part in enumerate(ordered):
        largest = max(largest, min(1.0, part.p_value * (len(ordered) - place)))
        assert part.adjusted == pytest.approx(largest)
    assert not failures


def test_what_cannot_be_compared_is_named_and_the_rest_is_compared():
    labels = ([1, 1], [1, 1], [1, 0])
    frames = [radius_frame([0.5, 0.1], [1, 1], label, name=str(at)) for at, label in enumerate(labels)]
    other = radius_frame([0.5], [1], [65], settings={"dataset": "imagenet"})
    compared, failures = comparison.compare_all([*frames, other], [0.25])
    assert [each.second for each in compared] == ["1"]
    assert len(failures) == 1
    assert "idx 1 has label" in failures[0]


def test_other_labels_are_an_error_that_names_the_image():
    first = radius_frame([0.5, 0.1], [1, 1], [1, 0], idx=[0, 100])
    second = radius_frame([0.5, 0.1], [1, 1], [1, 65], idx=[0, 100])
    with pytest.raises(SmoothctlError, match=r"idx 100 has label 0 .* and 65"):
        comparison.compare(first, second, [0.0])


def test_differences_in_settings_are_named():
    votes, labels = [[100, 0], [90, 10]], [0, 1]
    first = certified_frame(votes, labels, name="a", n0=100)
    second = certified_frame(votes, labels, name="b", sigma=0.25, alpha=0.01, idx=[5, 6], n0=10, rule="budget")
    said = " ".join(sources.cautions([first, second]))
    for word in ("different images", "differ in alpha", "differ in sigma", "differ in rule", "differ in n0"):
        assert word in said
    assert "has label" in " ".join(sources.cautions([first, radius_frame([0.1, 0.2], [0, 0], [1, 1], name="c")]))


def test_no_acr_difference_where_there_is_no_acr():
    grid = radius_frame([0.5], [1], [1], settings={"rule": "radii", "radii": [0.5]})
    assert comparison.compare(grid, grid, [0.5]).acr is None
    report = assemble([grid], (0.25, 0.5))
    assert any("no ACR" in line for line in report.noted)
    assert any("at 0.25 its accuracy is a lower bound" in line for line in report.said)
    assert not assemble([grid], (0.5,)).said  # nothing to warn of: its radii are exact


@given(st.lists(st.lists(st.floats(0, 2), min_size=5, max_size=5), min_size=2, max_size=4), st.floats(0, 2))
def test_the_envelope_is_the_highest_curve(radii, at):
    frames = [radius_frame(row, [1] * 5, [1] * 5, name=str(place)) for place, row in enumerate(radii)]
    (point,) = comparison.envelope(frames, [at])
    assert point.accuracy == max(np.mean(np.array(row) >= at) for row in radii)
    named = frames[int(point.name)]
    assert np.mean(named.proved >= at) == point.accuracy
    assert point.clean == 1.0


def test_of_equals_the_envelope_takes_the_cleaner():
    low = radius_frame([0.5, 0.1], [1, 2], [1, 1], name="low")
    high = radius_frame([0.5, 0.1], [1, 1], [1, 1], name="high")
    assert comparison.envelope([low, high], [0.3])[0].name == "high"
