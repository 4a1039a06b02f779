"""From estimation votes to a lower bound on p_A and the radius that it proves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from smoothctl.hooks.noises import Noise
from smoothctl.hooks.rules import Bound, Votes
from smoothctl.smoothing.tails import proven_lower, proven_upper


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
        part = alpha / (1 + len(buckets))
        p_lower = proven_lower(int(votes[top]), int(votes.sum()), part)
        runner_up = max(proven_upper(count, int(votes.sum()), part) for count in buckets)
        return p_lower, radius_pair(p_lower, runner_up, sigma) if p_lower >= runner_up else -1.0

    def bound(top: int, votes: Votes, selection: Votes) -> tuple[float, float]:
        alike = np.round(selection * (votes.sum() / selection.sum())).astype(np.int64)
        better = len(votes) > 2 and split(top, alike, selection)[1] > binary(top, alike, selection)[1]
        return split(top, votes, selection) if better else binary(top, votes, selection)

    return bound


BOUNDS: Mapping[str, Callable[[Noise, float, float], Bound]] = {"binary": binary_bound, "multi": multi_bound}
"""By the name that settings give; each from (noise, sigma, alpha)."""
