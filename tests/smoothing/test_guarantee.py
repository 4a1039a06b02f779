"""The short form of tests/benchmarks/guarantee.py: no rule is wrong more often than alpha, rounding included."""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction

import numpy as np
import pytest

from smoothctl.base.streams import Stream
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import Certificate, Request, StoppingRule
from smoothctl.smoothing.radius_bounds import binary_bound
from smoothctl.smoothing.tails import proven_lower
from smoothctl.testing import check_rule
from smoothctl.testing.rules import SIGMA, enumerate_claims, violation, worst
from tests.benchmarks import guarantee

RULES = {name: each for name, each in guarantee.every_rule(3, 40, 22).items() if not each.rule.pilot}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("distance", [0.0, 1e-6])
def test_no_rule_is_wrong_more_often_than_alpha(name: str, distance: float) -> None:
    ratio, _, sequences = violation(RULES[name], distance)
    assert sequences > 80
    assert 0.3 < ratio <= 1.0


def test_a_larger_n_from_an_independent_pilot_costs_no_alpha() -> None:
    ratio, _, _ = violation(guarantee.every_rule(1, 12, 12)["budget budget=draft binary"])
    assert 0.1 < ratio <= 1.0


@pytest.mark.parametrize("rule", [entry.value for entry in registry().all("rule")], ids=lambda rule: rule.name)
def test_every_registered_rule_passes_the_check_of_plugins(rule: StoppingRule) -> None:
    check_rule(rule)


def test_three_classes_with_ties() -> None:
    assert guarantee.audit_multi(3, 8, 0.2, 12)[0] <= 1.0
    assert 0.05 < guarantee.audit_predict(12, 0.05, 12)[0] <= 1.0


def test_what_ifs_from_votes() -> None:
    assert 0.5 < guarantee.audit_what_if(60, 0.01, 0.05)[0] <= 1.0


def reusing(n: int, alpha: float) -> Generator[Request, np.ndarray, Certificate]:
    """The mistake: the class is chosen from the very votes that are then bounded."""
    votes = yield Request(Stream.ESTIMATE, n)
    top = int(votes.argmax())
    p_lower, radius = binary_bound(guarantee.GAUSSIAN, SIGMA, alpha)(top, votes, votes)
    return Certificate(top, top if radius >= 0 else ABSTAIN, p_lower, max(0.0, radius), n, votes, votes, "")


def peeking(looks: tuple[int, ...], alpha: float) -> Generator[Request, np.ndarray, Certificate]:
    """The mistake: full alpha at every look."""
    best = Certificate(0, ABSTAIN, 0.0, 0.0, 0, np.zeros(2), np.zeros(2), "")
    for n in looks:
        votes = yield Request(Stream.ESTIMATE, n)
        p_lower = proven_lower(int(votes[0]), n, alpha)
        radius = guarantee.GAUSSIAN.radius(p_lower, SIGMA) if p_lower >= 0.5 else -1.0
        if radius > best.radius:
            best = Certificate(0, 0, p_lower, radius, n, votes, votes, "")
    return best


def test_negative_controls_are_refuted() -> None:
    for make in (lambda: reusing(40, 0.05), lambda: peeking((10, 20, 40), 0.05)):
        claims = enumerate_claims(make, 2)
        assert worst(claims, guarantee.GAUSSIAN)[0] > Fraction(0.05)
