"""What the field computes from a log. Every row counts in every denominator: abstentions, wrong
classes and failed images are images that are not certified. Comparisons use unrounded radii."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from scipy import special, stats

from smoothctl.records.log import parse_votes
from smoothctl.reporting import noises
from smoothctl.reporting.frames import Floats, Frame, Ints

# Radii of a table are STEP apart up to FINE.
STEP, FINE = 0.25, 4.0
CONFIDENCE = 0.95
RESAMPLES = 2000
NO_ACR = (
    "the stopping rule proves membership in a grid of radii, not the largest radius of each image, so ACR "
    "would be a lower bound that depends on the grid; certified accuracy at the grid's radii is exact"
)


def certified_counts(frame: Frame, radii: Sequence[float]) -> tuple[int, ...]:
    """Images whose class is right and whose radius is at least r (Cohen et al. 2019, section 4)."""
    ordered = np.sort(frame.proved)
    return tuple(len(ordered) - int(place) for place in np.searchsorted(ordered, radii, side="left"))


def certified_accuracy(frame: Frame, radii: Sequence[float]) -> tuple[float, ...]:
    """Certified accuracy: :func:`certified_counts` as shares of all images."""
    return tuple(count / len(frame) for count in certified_counts(frame, radii))


def interval(count: int, total: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Two-sided exact binomial interval over images (Clopper and Pearson 1934)."""
    return intervals([count], total, confidence)[0]


def intervals(counts: Sequence[int], total: int, confidence: float = CONFIDENCE) -> tuple[tuple[float, float], ...]:
    """:func:`interval` of several counts at once."""
    from statsmodels.stats.proportion import proportion_confint

    if not counts:
        return ()
    lower, upper = proportion_confint(np.array(counts), total, alpha=1 - confidence, method="beta")
    return tuple(zip(lower.tolist(), upper.tolist(), strict=True))


def bernstein_lower(count: int, total: int, alpha: float, rho: float) -> float:
    """Certified accuracy that holds with probability 1-rho over the noise, on these very images.

    Cohen et al. 2019, appendix D, by Bernstein's inequality with L = ln(1/rho):
    Y/m - alpha - sqrt(2 alpha(1-alpha) L/m) - L/(3m); the published script lacks the 2, and then
    fails more often than rho. Valid for alpha <= 1/2 and noise that is independent across images.
    """
    log = math.log(1 / rho)
    return max(0.0, count / total - alpha - math.sqrt(2 * alpha * (1 - alpha) * log / total) - log / (3 * total))


def binomial_lower(count: int, total: int, alpha: float, rho: float) -> float:
    """The same statement as :func:`bernstein_lower`, exact: wrong claims are at most Binomial(m, alpha)
    in distribution, so no more than its (1-rho)-quantile of them are wrong."""
    return max(0.0, (count - _most_wrong(total, alpha, rho)) / total)


@cache
def _most_wrong(total: int, alpha: float, rho: float) -> int:
    return int(stats.binom.ppf(1 - rho, total, alpha))


def average_certified_radius(frame: Frame) -> float | None:
    """ACR (Zhai et al. 2020): the mean of radius * correct over all rows; None where rows hold no radii."""
    if frame.kind != "certify" or frame.grid is not None:
        return None
    return float(np.mean(np.maximum(frame.proved, 0.0)))


def acr_interval(frame: Frame, confidence: float = CONFIDENCE, seed: int = 0) -> tuple[float, float] | None:
    """Bootstrap percentile interval of ACR over images (Efron 1979), repeatable by its seed."""
    if average_certified_radius(frame) is None:
        return None
    return mean_interval(np.maximum(frame.proved, 0.0), confidence, seed)


def mean_interval(values: Floats, confidence: float = CONFIDENCE, seed: int = 0) -> tuple[float, float]:
    """Bootstrap percentile interval of a mean.

    Values that are equal are drawn together, by a multinomial: the same distribution of means.
    """
    distinct, counts = np.unique(values, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(len(values), counts / len(values), size=RESAMPLES)
    low, high = np.quantile(draws @ distinct / len(values), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def abstained(frame: Frame) -> float | None:
    """Share of images without a class; None where a rule that proves chosen radii abstains at the least of them."""
    return None if frame.kind == "certify" and frame.grid is not None else float(frame.abstained.mean())


def smoothed_accuracy(frame: Frame) -> float | None:
    """Share of images whose leading class is the label, abstaining or not; None if the log lacks it."""
    if (frame.top < 0).all():
        return None
    return float(np.mean(frame.top == frame.label))


def label_probabilities(frame: Frame) -> Floats | None:
    """Estimates of p_A of the true label, votes / n, [images with estimation votes]; None without votes.

    An image that failed, or that a rule gave up after selection, has none.
    """
    if not frame.votes:
        return None
    kept = frame.n > 0
    if not kept.any():
        return None
    votes = np.array([votes.get(int(label), 0) for votes, label in zip(frame.votes, frame.label, strict=True)])
    return votes[kept] / frame.n[kept]


def constant_acr(frame: Frame) -> float | None:
    """ACR that a classifier with one answer for everything would get with the same sigma, n and alpha.

    It is always sure, so every image of the most frequent class gets the largest radius there is, what
    p_A >= alpha^(1/n) proves: the reason not to judge by ACR alone. None where the noise is not known here.
    """
    n, alpha = frame.settings.get("n"), frame.alpha
    if n is None or alpha is None or average_certified_radius(frame) is None:
        return None
    surest = np.array([alpha ** (1 / n)])
    if frame.settings.get("noise") is None:
        # Others' logs are of Gaussian noise, by which their settings were inferred.
        largest = None if frame.sigma is None else frame.sigma * special.ndtri(surest)
    else:
        radius = noises.radius_of(frame)
        largest = None if radius is None else radius(surest)
    if largest is None:
        return None
    share = np.unique(frame.label, return_counts=True)[1].max() / len(frame)
    return float(share * max(0.0, largest[0]))


def evaluations(frame: Frame) -> float | None:
    """Mean number of noise samples an image, selection included; None if the log does not say."""
    if (frame.n < 0).all():
        return None
    selected = float(frame.settings.get("n0", 0))
    if frame.tells.n_from != "settings" and frame.selection_text:
        # A pilot may extend the selection, and a clear one stops before n0.
        selected = float(np.mean([sum(parse_votes(text).values()) for text in frame.selection_text]))
    return float(np.mean(np.maximum(frame.n, 0))) + selected


def subset(places: Sequence[int] | Ints) -> str:
    """Which images a log holds, as ``0..9980 step 20``."""
    ordered = np.asarray(places)
    steps = np.diff(ordered)
    if not len(steps):
        return str(ordered[0])
    step = f"step {steps[0]}" if (steps == steps[0]).all() else "irregular"
    return f"{ordered[0]}..{ordered[-1]} {step}"


def default_radii(frames: Iterable[Frame]) -> tuple[float, ...]:
    """0, 0.25, ... as far as any log certifies; beyond radius 4, steps double as often as the radius does.

    Where a log proves only certain radii, those are the table's.
    """
    listed = list(frames)
    proved = {radius for frame in listed for radius in frame.grid or ()}
    if proved:
        return tuple(sorted(proved))
    largest = max((float(np.nanmax(frame.radius, initial=0.0)) for frame in listed if len(frame)), default=0.0)
    grid, step = [0.0], STEP
    while grid[-1] + step <= largest:
        grid.append(grid[-1] + step)
        if grid[-1] >= FINE * step / STEP:
            step *= 2
    return tuple(grid)
