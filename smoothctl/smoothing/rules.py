"""Stopping rules: how the votes of one image become a certificate.

Each is a generator for :class:`smoothctl.sampling.Sampler`. All have the same guarantee: what is
returned is wrong with probability at most alpha. Selection, pilot and estimation see disjoint noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from smoothctl.base.draws import Stream
from smoothctl.hooks.noises import ABSTAIN, Noise
from smoothctl.smoothing.pilot import NEARLY_UNANIMOUS, choose_n
from smoothctl.smoothing.sampling import Request, Rule, Votes
from smoothctl.smoothing.sequential import Plan, is_futile
from smoothctl.smoothing.settings import PILOT_EXTENSION
from smoothctl.smoothing.tails import proven_lower, proven_upper


@dataclass(frozen=True)
class Certificate:
    """What was proved for one image, with probability at least 1-alpha over the noise.

    top: the class selected; predict: the class certified, or ABSTAIN; p_lower: proved lower bound
    on p_A; radius: in the noise's norm, in units of pixels in [0,1], 0 when abstaining; n: copies
    used for estimation; votes, selection: counts per class of that sample, and of the copies that chose
    the class and n; verdict: ``certified``, ``abstained``, ``not certified`` (given up early),
    ``undecided`` (at the limit of n) or ``misclassified`` (skipped, since the selected class is not the label);
    arithmetic: in which noise was added, ``exact, grid 1/255`` or ``float``.
    """

    top: int
    predict: int
    p_lower: float
    radius: float
    n: int
    votes: Votes
    selection: Votes
    verdict: str
    arithmetic: str = "float"


Bound = Callable[[int, Votes, Votes], tuple[float, float]]
"""From (top, votes, selection) to (lower bound on p_A, radius); a negative radius abstains."""


def binary_bound(noise: Noise, sigma: float, alpha: float) -> Bound:
    """Cohen et al. 2019: p_A by Clopper-Pearson, the runner-up by 1 - p_A."""

    def bound(top: int, votes: Votes, selection: Votes) -> tuple[float, float]:
        p_lower = proven_lower(int(votes[top]), int(votes.sum()), alpha)
        return p_lower, noise.radius(p_lower, sigma) if p_lower >= 0.5 else -1.0

    return bound


def multi_bound(noise: Noise, sigma: float, alpha: float) -> Bound:
    """Bound the runner-up too, so that p_A < 1/2 can be certified (after Delattre et al. 2025).

    The other classes are put into buckets that the selection votes fix: one for each class that got
    any, one for all the rest. Clopper-Pearson bounds at alpha / (1 + buckets) hold together (union
    bound). Whether this or the binary bound is used is decided from the selection votes only, by
    which promises the larger radius if estimation votes alike.
    """
    radius_pair = noise.radius_pair
    assert radius_pair is not None
    binary = binary_bound(noise, sigma, alpha)

    def split(top: int, votes: Votes, selection: Votes) -> tuple[float, float]:
        own = [place for place in np.flatnonzero(selection) if place != top]
        rest = int(votes.sum() - votes[top] - votes[own].sum())
        buckets = [int(votes[place]) for place in own] + ([rest] if len(own) + 1 < len(votes) else [])
        share = alpha / (1 + len(buckets))
        p_lower = proven_lower(int(votes[top]), int(votes.sum()), share)
        runner_up = max(proven_upper(count, int(votes.sum()), share) for count in buckets)
        return p_lower, radius_pair(p_lower, runner_up, sigma) if p_lower >= runner_up else -1.0

    def bound(top: int, votes: Votes, selection: Votes) -> tuple[float, float]:
        alike = np.round(selection * (votes.sum() / selection.sum())).astype(np.int64)
        better = len(votes) > 2 and split(top, alike, selection)[1] > binary(top, alike, selection)[1]
        return split(top, votes, selection) if better else binary(top, votes, selection)

    return bound


def _estimated(top: int, votes: Votes, selection: Votes, bound: Bound) -> Certificate:
    p_lower, radius = bound(top, votes, selection)
    n = int(votes.sum())
    if radius < 0:
        return Certificate(top, ABSTAIN, p_lower, 0.0, n, votes, selection, "abstained")
    return Certificate(top, top, p_lower, radius, n, votes, selection, "certified")


def _without_estimate(top: int, selection: Votes, verdict: str) -> Certificate:
    return Certificate(top, ABSTAIN, 0.0, 0.0, 0, np.zeros_like(selection), selection, verdict)


def cohen(n0: int, n: int, bound: Bound) -> Rule[Certificate]:
    """CERTIFY of Cohen et al. 2019 (section 3.2.2): select on n0 copies, estimate on n fresh ones."""
    selection = yield Request(Stream.SELECT, n0)
    top = int(selection.argmax())
    votes = yield Request(Stream.ESTIMATE, n)
    return _estimated(top, votes, selection, bound)


def two_stage(n0: int, n: int, bound: Bound, price: float, noise: Noise, alpha: float) -> Rule[Certificate]:
    """Select, choose how many copies the image is worth (at most n), estimate on as many fresh ones."""
    selection = yield Request(Stream.SELECT, n0)
    top = int(selection.argmax())
    failures, pilot = n0 - int(selection[top]), n0
    if failures <= NEARLY_UNANIMOUS:
        selection = selection + (yield Request(Stream.PILOT, PILOT_EXTENSION))
        pilot = n0 + PILOT_EXTENSION
        failures = pilot - int(selection[top])
    chosen = choose_n(failures, pilot, price, noise, alpha, n)
    if chosen == 0:
        return _without_estimate(top, selection, "abstained")
    votes = yield Request(Stream.ESTIMATE, chosen)
    return _estimated(top, votes, selection, bound)


def group_sequential(n0: int, plan: Plan) -> Rule[Certificate]:
    """Select, then look again and again until every radius of the plan is proved or out of reach."""
    selection = yield Request(Stream.SELECT, n0)
    top = int(selection.argmax())
    known = n0, n0 - int(selection[top])
    proved = 0
    if is_futile(plan, proved, 0, 0, known):
        return _without_estimate(top, selection, "not certified")
    for look, n in enumerate(plan.looks):
        votes = yield Request(Stream.ESTIMATE, n)
        failures = n - int(votes[top])
        while proved < len(plan.radii) and failures <= plan.bounds[proved][look]:
            proved += 1
        verdict = "undecided"
        if proved == len(plan.radii):
            verdict = "certified"
            break
        if n < plan.looks[-1] and is_futile(plan, proved, n, failures, known):
            verdict = "not certified"
            break
    if proved == 0:
        return Certificate(top, ABSTAIN, 0.0, 0.0, n, votes, selection, verdict)
    return Certificate(top, top, plan.thresholds[proved - 1], plan.radii[proved - 1], n, votes, selection, verdict)


def stating(rule: Rule[Certificate], distance: float, arithmetic: str) -> Rule[Certificate]:
    """Run a rule, and let its certificate say what holds: p_lower less the distance of the noise from its law."""
    certificate = yield from rule
    p_lower = certificate.p_lower
    if distance:
        p_lower = max(0.0, math.nextafter(p_lower - distance, -math.inf))
    return replace(certificate, p_lower=p_lower, arithmetic=arithmetic)


def skipping_misclassified(rule: Rule[Certificate], label: int) -> Rule[Certificate]:
    """Run a rule, but stop after selection if the selected class is not the label.

    For evaluation only: such an image can never count as certified correctly, so certified
    accuracy and ACR are unchanged, but its row proves nothing.
    """
    request = next(rule)
    while True:
        votes = yield request
        top = int(votes.argmax())
        if request.stream is Stream.SELECT and top != label:
            rule.close()
            return _without_estimate(top, votes, "misclassified")
        try:
            request = rule.send(votes)
        except StopIteration as stop:
            result: Certificate = stop.value
            return result
