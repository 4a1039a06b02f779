"""PREDICT: known answers, symmetry and its level."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from smoothctl import UsageError, predict
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.smoothing.predict import Prediction, majority
from tests.networks import Constant, Threshold, grey_images


def outcome(votes: list[int], alpha: float = 0.001) -> Prediction:
    """What PREDICT makes of given votes."""
    rule = majority(sum(votes), alpha)
    next(rule)
    with pytest.raises(StopIteration) as stop:
        rule.send(np.array(votes))
    result: Prediction = stop.value.value
    return result


def test_clear_majority_is_returned_and_a_tie_abstains() -> None:
    assert outcome([33, 67]).predict == 1
    assert outcome([34, 66]).predict == ABSTAIN
    assert outcome([50, 50]).predict == ABSTAIN
    assert outcome([11, 0]).predict == 0
    assert outcome([10, 0]).predict == ABSTAIN
    assert outcome([11]).predict == 0


def test_level_by_enumeration_over_three_classes() -> None:
    """With p = (.4, .4, .2) a returned class 2 is always an error, and 0 or 1 is one half of the time."""
    n, alpha = 30, 0.05
    p = (0.4, 0.4, 0.2)
    wrong = 0.0
    for first, second in itertools.product(range(n + 1), repeat=2):
        if first + second <= n:
            votes = [first, second, n - first - second]
            if outcome(votes, alpha).predict != ABSTAIN:
                wrong += stats.multinomial.pmf(votes, n, p)
    assert wrong <= alpha


def test_model_is_predicted_and_belongs_to_index() -> None:
    images = grey_images(4, 0.9)
    predictions = predict(Threshold(), images, sigma=0.5, n=200)
    assert [item.predict for item in predictions] == [1, 1, 1, 1]
    (alone,) = predict(Threshold(), images[3:], sigma=0.5, n=200, indices=[3], batch_size=7)
    assert tuple(alone.votes) == tuple(predictions[3].votes)


def test_an_n_that_can_never_predict_is_refused() -> None:
    with pytest.raises(UsageError, match="predict needs n>=11"):
        predict(Constant(), grey_images(1, 0.5), sigma=0.5, n=10)
