"""Stopping rules: exact coverage, negative controls, and what they leave unchanged."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from smoothctl_plugins.rules.budget import COSTS, NEARLY_UNANIMOUS, PILOT_EXTENSION, Options
from smoothctl_plugins.rules.expected_radius import choose_n
from smoothctl_plugins.rules.group_sequential import boundary, schedule

from smoothctl import UsageError, certify
from smoothctl.base.streams import Stream
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import Certificate, Rule
from smoothctl.smoothing.backends import plain
from smoothctl.smoothing.bounds import clopper_pearson_lower
from smoothctl.smoothing.sampling import Sampler
from tests.networks import Constant, Threshold, grey_images
from tests.procedures import begin

GAUSSIAN = registry().find("noise", "gaussian").value
ALPHA = 0.001
N0 = 100


def outcome(rule: Rule[Certificate], votes: Callable[[Stream, int], Sequence[int]]) -> Certificate:
    """Run a rule on scripted votes."""
    request = next(rule)
    while True:
        try:
            request = rule.send(np.array(votes(*request)))
        except StopIteration as stop:
            result: Certificate = stop.value
            return result


def make(label: int = -1, **values: object) -> Rule[Certificate]:
    return begin(GAUSSIAN, 0.5, **values)(label)


# Known choices of n at cost 2e-6, computed independently.
@pytest.mark.parametrize(
    ("failures", "pilot", "n"),
    [
        (4, 100, 15_000), (20, 100, 10_000), (45, 100, 7_500), (52, 100, 3_000), (55, 100, 0),
        (0, 1000, 100_000), (1, 1000, 40_000), (3, 1000, 30_000), (5, 1000, 20_000), (30, 1000, 15_000),
        (100, 1000, 10_000), (450, 1000, 10_000), (500, 1000, 0),
    ],
)  # fmt: skip
def test_n_is_chosen_as_known(failures: int, pilot: int, n: int) -> None:
    assert choose_n(failures, pilot, COSTS["balanced"], GAUSSIAN, ALPHA, 100_000) == n


def test_budgets_are_those_that_have_a_cost() -> None:
    assert get_args(Options.model_fields["budget"].annotation) == tuple(COSTS)


def least_votes(p: float, n: int, alpha: float) -> int:
    """The least k whose lower bound exceeds p (and is not an abstention)."""
    k = np.arange(n + 1)
    proves = (clopper_pearson_lower(k, n, alpha) > p) & (clopper_pearson_lower(k, n, alpha) >= 0.5)
    return int(np.argmax(proves)) if proves.any() else n + 1


def pilots(p: float) -> list[tuple[int, int, float]]:
    """(failures, size, probability) of the pilot of the two-stage rule, extension included."""
    found = []
    for first in range(N0 + 1):
        chance = stats.binom.pmf(first, N0, 1 - p)
        if first > NEARLY_UNANIMOUS:
            found.append((first, N0, chance))
        else:
            chances = chance * stats.binom.pmf(np.arange(PILOT_EXTENSION + 1), PILOT_EXTENSION, 1 - p)
            found += [(first + f, N0 + PILOT_EXTENSION, c) for f, c in enumerate(chances) if c > 1e-12]
    return found


@pytest.mark.parametrize("p", [0.5, 0.6, 0.9, 0.97, 0.999])
def test_two_stage_coverage_by_exact_enumeration(p: float) -> None:
    """P(a bound above the true p is returned), over all pilots and estimation samples, is at most alpha."""
    n_max, alpha = 2000, 0.01
    wrong = 0.0
    for failures, pilot, chance in pilots(p):
        n = choose_n(failures, pilot, COSTS["fast"], GAUSSIAN, alpha, n_max)
        if n:
            wrong += chance * stats.binom.sf(least_votes(p, n, alpha) - 1, n, p)
    assert wrong <= alpha * (1 + 1e-6)


def test_negative_control_reusing_the_pilot_is_caught() -> None:
    """Counting the pilot's votes again in the bound, as some published code does, exceeds alpha."""
    alpha, n = 0.05, 100
    worst = 0.0
    for p in np.linspace(0.5, 0.99, 33):
        wrong = 0.0
        for first in range(N0 + 1):
            # The pilot decides how many more to draw: none if it already looks good, else n.
            total = N0 if N0 - first >= least_votes(float(p), N0, alpha) else N0 + n
            chance = stats.binom.pmf(first, N0, 1 - p)
            needed = least_votes(float(p), total, alpha) - (N0 - first)
            wrong += chance * (1.0 if total == N0 else stats.binom.sf(needed - 1, n, p))
        worst = max(worst, wrong)
    assert worst > 1.2 * alpha


def test_negative_control_peeking_at_full_alpha_is_caught() -> None:
    """Clopper-Pearson at full alpha at each interim analysis crosses far more often than alpha."""
    sizes, p0 = schedule(3000), 0.5
    peeking = [n - least_votes(p0, n, ALPHA) for n in sizes]
    rng = np.random.default_rng(0)
    increments = rng.binomial(np.diff((0, *sizes)), 0.5, size=(400_000, len(sizes)))
    failures = increments.cumsum(axis=1)
    assert (failures <= peeking).any(axis=1).mean() > 2 * ALPHA
    exact = np.array(boundary(p0, ALPHA, sizes))
    assert (failures <= exact).any(axis=1).mean() <= ALPHA + 3 * np.sqrt(ALPHA / 400_000)


def test_radii_prove_the_largest_in_reach() -> None:
    """Pixel .8 and sigma .5: the true radius is .3."""
    radii = (0.0, 0.1, 0.2, 0.25, 0.35, 0.5)
    for certificate in certify(Threshold(), grey_images(8, 0.8), sigma=0.5, radii=radii):
        assert certificate.predict == 1
        assert certificate.radius == 0.25
        assert certificate.verdict in ("not certified", "undecided")
        assert certificate.n < 125_000


def test_a_single_radius_is_a_grid_of_one() -> None:
    images = grey_images(6, 0.7)
    grid = certify(Threshold(), images, sigma=0.5, radii=(0.1, 0.4))
    single = certify(Threshold(), images, sigma=0.5, radii=(0.1,))
    assert [item.radius for item in grid] == [item.radius for item in single] == [0.1] * 6
    assert {item.verdict for item in single} == {"certified"}
    assert {item.verdict for item in grid} == {"not certified"}


def test_futility_only_takes_certificates_away(monkeypatch: pytest.MonkeyPatch) -> None:
    images, values = grey_images(40, 0.66)[:, :1, :1, :1], {"sigma": 0.5, "radii": (0.15,), "n": 20_000}
    hasty = certify(Threshold(), images, **values)  # type: ignore[arg-type]
    monkeypatch.setattr("smoothctl_plugins.rules.group_sequential.is_futile", lambda *_: False)
    patient = certify(Threshold(), images, **values)  # type: ignore[arg-type]
    for early, late in zip(hasty, patient, strict=True):
        assert early.radius in (0.0, late.radius)


def wrong_share(
    sampler: Sampler[Certificate], rule: Callable[[int], Rule[Certificate]], true: float, count: int
) -> float:
    image = torch.full((1, 1, 1), 0.5 + true)
    decided = list(sampler.run(((index, image) for index in range(count)), rule))
    return float(np.mean([item.outcome.predict != ABSTAIN and item.outcome.radius > true for item in decided]))


@pytest.mark.parametrize("values", [{"radii": (0.1, 0.1001), "n": 2000}, {"budget": "fast", "n": 2000}])
def test_rules_are_wrong_no_more_often_than_alpha_end_to_end(values: dict) -> None:
    """The true radius is .1, a hair below a radius asked for; simulated at a large alpha."""
    alpha, count = 0.05, 2000
    rule = begin(GAUSSIAN, 0.5, alpha=alpha, **values)
    sampler: Sampler[Certificate] = Sampler(plain(Threshold()), GAUSSIAN, 0.5, 0, torch.device("cpu"), 50_000)
    assert wrong_share(sampler, rule, 0.1, count) <= alpha + 3 * np.sqrt(alpha / count)


@settings(max_examples=15, deadline=None)
@given(st.integers(10, 3000))
def test_rules_do_not_depend_on_the_batch(batch_size: int) -> None:
    images = grey_images(4, 0.62)[:, :1, :1, :1]
    for values in ({"radii": (0.05, 0.1)}, {"budget": "draft"}):
        small, large = (
            certify(Threshold(), images, sigma=0.5, n=3000, batch_size=size, **values)  # type: ignore[arg-type]
            for size in (batch_size, 1000)
        )
        assert [(item.n, item.radius, tuple(item.votes)) for item in small] == [
            (item.n, item.radius, tuple(item.votes)) for item in large
        ]


def test_two_stage_extends_a_unanimous_pilot_and_uses_fresh_copies() -> None:
    asked: list[tuple[Stream, int]] = []

    def votes(stream: Stream, total: int) -> list[int]:
        asked.append((stream, total))
        return [0, total]

    certificate = outcome(make(budget="fast"), votes)
    assert [stream for stream, _ in asked] == [Stream.SELECT, Stream.PILOT, Stream.ESTIMATE]
    assert asked[2][1] == certificate.n
    assert certificate.p_lower == pytest.approx(ALPHA ** (1 / certificate.n))


def test_two_stage_abstains_at_once_where_no_sample_pays() -> None:
    certificate = outcome(make(budget="fast"), lambda stream, total: [total // 3, total - 2 * (total // 3), total // 3])
    assert (certificate.predict, certificate.n, certificate.verdict) == (ABSTAIN, 0, "abstained")


@pytest.mark.parametrize("values", [{}, {"radii": (0.1,)}, {"budget": "fast"}])
def test_skipping_looks_at_the_selection_only(values: dict) -> None:
    asked: list[Stream] = []

    def votes(stream: Stream, total: int) -> list[int]:
        asked.append(stream)
        return [0, total, 0]

    skipped = outcome(make(0, skip_misclassified=True, **values), votes)
    assert (skipped.verdict, skipped.predict, asked) == ("misclassified", ABSTAIN, [Stream.SELECT])
    kept = outcome(make(1, skip_misclassified=True, **values), votes)
    plain = outcome(make(0, **values), votes)
    assert (kept.radius, kept.n, kept.predict) == (plain.radius, plain.n, plain.predict)


def test_labels_change_nothing_otherwise() -> None:
    for values in ({"n": 500}, {"radii": (0.1,)}, {"budget": "fast"}):
        made = begin(GAUSSIAN, 0.5, **values)
        scripted = [outcome(made(label), lambda stream, total: [total // 10, total - total // 10]) for label in (0, 1)]
        assert scripted[0].radius == scripted[1].radius


def test_constant_model_is_proved_early() -> None:
    (certificate,) = certify(Constant(), grey_images(1, 0.5), sigma=0.5, radii=(0.5,))
    assert (certificate.radius, certificate.verdict) == (0.5, "certified")
    assert certificate.n <= 200


@pytest.mark.parametrize("n", [10**6, 10**7, 10**9])
def test_a_budget_costs_no_more_to_plan_at_any_n(n: int) -> None:
    choose_n(7, 100, COSTS["fast"], GAUSSIAN, ALPHA, n)  # tables for this n are made once
    start = time.perf_counter()
    for failures in range(8, 28):
        choose_n(failures, 100, COSTS["fast"], GAUSSIAN, ALPHA, n)
    assert (time.perf_counter() - start) / 20 < 0.05  # half a millisecond on an idle core


def test_an_alpha_that_no_n_can_help_says_so() -> None:
    with pytest.raises(UsageError, match="no n proves anything at alpha=1e-20; give a larger alpha"):
        make(radii=(0.1,), alpha=1e-20)


@pytest.mark.parametrize(
    "values", [{}, {"radii": (0.05, 0.1, 0.2)}, {"budget": "fast"}, {"bound": "multi"}], ids=lambda v: "-".join(v)
)
def test_linear_models_are_certified_beyond_their_distance_no_more_often_than_alpha(values: dict) -> None:
    """600 images at a distance of .1 whose noise is exact: false radii are Binomial(600, alpha) at most."""
    pixel = (127 + 26) / 255
    network = Threshold()
    images = torch.zeros(600, 1, 1, 1) + pixel
    made = certify(network, images, sigma=0.25, n0=20, n=400, alpha=0.1, batch_size=20_000, **values)
    assert {item.arithmetic for item in made} == {"exact, grid 1/255"}
    # The rounded classifier says 1 from 128 on: p_A is that of the half-space at 127.5.
    distance = pixel - 127.5 / 255
    wrong = sum(item.radius > (distance if item.predict == 1 else -1.0) for item in made if item.predict >= 0)
    assert wrong <= stats.binom.ppf(1 - 1e-4, 600, 0.1)
    assert sum(item.predict == 1 for item in made) > 300
