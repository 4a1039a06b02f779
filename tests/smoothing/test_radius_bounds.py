"""From votes to radii: the binary bound and that of several classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from smoothctl.hooks.registry import registry
from smoothctl.smoothing.radius_bounds import binary_bound, multi_bound

GAUSSIAN = registry().find("noise", "gaussian").value
ALPHA = 0.001


def test_multi_bound_certifies_below_one_half() -> None:
    selection, votes = np.array([45, 20, 18, 17]), np.array([4500, 2000, 1800, 1700])
    assert binary_bound(GAUSSIAN, 1.0, ALPHA)(0, votes, selection)[1] < 0
    p_lower, radius = multi_bound(GAUSSIAN, 1.0, ALPHA)(0, votes, selection)
    part = ALPHA / 4
    expected_lower = stats.beta.ppf(part, 4500, 5501)
    expected_upper = stats.beta.isf(part, 2001, 8000)
    assert p_lower == pytest.approx(expected_lower)
    assert radius == pytest.approx(0.5 * (stats.norm.ppf(expected_lower) - stats.norm.ppf(expected_upper)))


def test_multi_bound_merges_classes_that_selection_did_not_see() -> None:
    selection, votes = np.array([48, 30, 22, 0, 0]), np.array([480, 150, 70, 150, 150])
    part = ALPHA / 4
    expected = stats.beta.isf(part, 301, 700)  # the two unseen classes together
    _, radius = multi_bound(GAUSSIAN, 1.0, ALPHA)(0, votes, selection)
    lower = stats.beta.ppf(part, 480, 521)
    assert radius == pytest.approx(0.5 * (stats.norm.ppf(lower) - stats.norm.ppf(expected)))


def test_multi_bound_uses_the_binary_bound_where_selection_promises_more() -> None:
    selection, votes = np.array([100, 0, 0]), np.array([990, 5, 5])
    assert multi_bound(GAUSSIAN, 1.0, ALPHA)(0, votes, selection) == binary_bound(GAUSSIAN, 1.0, ALPHA)(
        0, votes, selection
    )


def test_multi_bound_is_wrong_no_more_often_than_alpha() -> None:
    """p = (.4, .35, .25): the true radius is that of theorem 1; certificates above it are counted."""
    alpha, rng, p = 0.05, np.random.default_rng(0), [0.4, 0.35, 0.25]
    bound = multi_bound(GAUSSIAN, 1.0, alpha)
    true = GAUSSIAN.radius_pair(0.4, 0.35, 1.0)
    wrong = 0
    for _ in range(4000):
        selection, votes = rng.multinomial(100, p), rng.multinomial(500, p)
        top = int(selection.argmax())
        radius = bound(top, votes, selection)[1]
        wrong += radius >= 0 and (top != 0 or radius > true)
    assert wrong / 4000 <= alpha + 3 * np.sqrt(alpha / 4000)


@pytest.mark.parametrize("selection", [[98, 2, 0], [60, 30, 10]])
@pytest.mark.parametrize("votes", [[980, 20, 0], [600, 300, 100]])
def test_which_bound_is_used_is_decided_by_the_selection_alone(selection: list[int], votes: list[int]) -> None:
    """Were it decided by the votes that are then bounded, the better of two bounds at alpha each would be taken."""
    bound = multi_bound(GAUSSIAN, 1.0, ALPHA)
    promised = bound(0, 10 * np.array(selection), np.array(selection))
    binary = promised == binary_bound(GAUSSIAN, 1.0, ALPHA)(0, 10 * np.array(selection), np.array(selection))
    found = bound(0, np.array(votes), np.array(selection))
    assert binary == (selection[0] == 98)
    assert (found == binary_bound(GAUSSIAN, 1.0, ALPHA)(0, np.array(votes), np.array(selection))) == binary
