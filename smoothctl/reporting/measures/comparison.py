"""Two logs image by image or as samples, and the best of several per radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.reporting.frames import Bools, Frame
from smoothctl.reporting.measures.metrics import (
    CONFIDENCE,
    average_certified_radius,
    certified_accuracy,
    mean_interval,
    subset,
)


@dataclass(frozen=True)
class Difference:
    """Second minus first, its interval over images, and the p-value of no difference: of this test alone, and
    ``adjusted`` for all tests of the report (Holm 1979)."""

    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float


@dataclass(frozen=True)
class Comparison:
    """Two logs: image by image on the ``images`` that they share, or if they share none (not ``paired``) as samples
    of different images; ``certified`` by radius; ``acr`` None where it is none."""

    first: str
    second: str
    images: int
    subset: str
    paired: bool
    certified: tuple[Difference, ...]
    acr: Difference | None


def compare_all(frames: Sequence[Frame], radii: Sequence[float]) -> tuple[list[Comparison], list[str]]:
    """Every further log against the first of its dataset and norm; the other half says what cannot be compared."""
    found, failures = [], []
    firsts: dict[tuple[str, str], Frame] = {}
    for frame in frames:
        first = firsts.setdefault((frame.group[0], frame.norm), frame)
        if first is frame:
            continue
        try:
            found.append(compare(first, frame, radii))
        except SmoothctlError as error:
            failures.append(str(error))
    return adjusted(found), failures


def compare(first: Frame, second: Frame, radii: Sequence[float]) -> Comparison:
    """Differences of certified accuracy and ACR, paired where the logs share images.

    Raises SmoothctlError for logs whose labels differ.
    """
    has_acr = average_certified_radius(first) is not None and average_certified_radius(second) is not None
    try:
        a, b = shared_images([first, second])
    except UsageError:
        a, b = (frame.take(~frame.failed) for frame in (first, second))
        certified = tuple(difference_of_samples(a.proved >= radius, b.proved >= radius) for radius in radii)
        means = (np.maximum(a.proved, 0.0), np.maximum(b.proved, 0.0))
        acr = _difference_of_means(*means) if has_acr else None
        subsets = f"{len(a)} and {len(b)} others"
        return Comparison(first.name, second.name, len(a) + len(b), subsets, False, certified, acr)
    clash = np.flatnonzero(a.label != b.label)
    if len(clash):
        at = clash[0]
        raise SmoothctlError(
            f"idx {a.idx[at]} has label {a.label[at]} in {first.path} and {b.label[at]} in {second.path}: "
            "the logs are not of the same images and cannot be compared image by image"
        )
    certified = tuple(difference_of_shares(a.proved >= radius, b.proved >= radius) for radius in radii)
    acr = _mean_difference(np.maximum(b.proved, 0.0) - np.maximum(a.proved, 0.0)) if has_acr else None
    return Comparison(first.name, second.name, len(a), subset(a.idx), True, certified, acr)


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with p-values adjusted for all of their tests together, by Holm's method."""
    from statsmodels.stats.multitest import multipletests

    tests = [part for each in comparisons for part in (*each.certified, *([each.acr] if each.acr else []))]
    if not tests:
        return list(comparisons)
    corrected = iter(multipletests([part.p_value for part in tests], method="holm")[1].tolist())
    return [
        replace(
            each,
            certified=tuple(replace(part, adjusted=next(corrected)) for part in each.certified),
            acr=replace(each.acr, adjusted=next(corrected)) if each.acr else None,
        )
        for each in comparisons
    ]


def shared_images(frames: Sequence[Frame]) -> list[Frame]:
    """Restrict logs to the images that all of them decided; raises UsageError if there are none."""
    common = set.intersection(*(set(frame.idx[~frame.failed].tolist()) for frame in frames))
    if not common:
        raise UsageError("the logs have no image in common")
    wanted = np.array(sorted(common))
    return [frame.take(np.isin(frame.idx, wanted)) for frame in frames]


def difference_of_shares(first: Bools, second: Bools, confidence: float = CONFIDENCE) -> Difference:
    """Difference of two paired shares.

    The p-value is that of McNemar's exact test: binomial on the images where the two differ. The
    interval is that of Agresti and Min (2005): Wald's after adding 1/2 to each cell.
    """
    from statsmodels.stats.contingency_tables import mcnemar

    gained, lost = int((second & ~first).sum()), int((first & ~second).sum())
    total = len(first) + 2
    spread = math.sqrt(max(0.0, gained + lost + 1 - (gained - lost) ** 2 / total)) / total
    reach = float(stats.norm.ppf((1 + confidence) / 2)) * spread
    middle = (gained - lost) / total
    both, neither = int((first & second).sum()), int((~first & ~second).sum())
    p_value = float(mcnemar([[both, lost], [gained, neither]], exact=True).pvalue)
    difference = (gained - lost) / len(first)
    return Difference(difference, max(-1.0, middle - reach), min(1.0, middle + reach), p_value, p_value)


def difference_of_samples(first: Bools, second: Bools, confidence: float = CONFIDENCE) -> Difference:
    """Difference of two shares over different images: Newcombe's interval (1998), Agresti and Caffo's test (2000)."""
    from statsmodels.stats.proportion import confint_proportions_2indep, test_proportions_2indep

    counts = (int(second.sum()), len(second), int(first.sum()), len(first))
    low, high = confint_proportions_2indep(*counts, compare="diff", method="newcomb", alpha=1 - confidence)
    p_value = float(test_proportions_2indep(*counts, compare="diff", method="agresti-caffo").pvalue)
    return Difference(float(second.mean() - first.mean()), float(low), float(high), p_value, p_value)


def _difference_of_means(first: np.ndarray, second: np.ndarray, confidence: float = CONFIDENCE) -> Difference:
    """Difference of means over different images: Welch's test and interval."""
    difference = float(second.mean() - first.mean())
    if min(len(first), len(second)) < 2 or (first.std() == 0 and second.std() == 0):
        return Difference(difference, difference, difference, 1.0, 1.0)
    found = stats.ttest_ind(second, first, equal_var=False)
    low, high = found.confidence_interval(confidence)
    return Difference(difference, float(low), float(high), float(found.pvalue), float(found.pvalue))


def _mean_difference(values: np.ndarray) -> Difference:
    """Mean of paired differences: bootstrap interval and paired t-test."""
    low, high = mean_interval(values)
    constant = bool(np.all(values == values[0]))
    if constant:
        p_value = 1.0 if values[0] == 0 or len(values) < 2 else 0.0
    else:
        p_value = float(stats.ttest_1samp(values, 0.0).pvalue)
    return Difference(float(np.mean(values)), low, high, p_value, p_value)


@dataclass(frozen=True)
class EnvelopePoint:
    """The best certified accuracy at a radius, the log that has it, and that log's clean accuracy."""

    radius: float
    accuracy: float
    name: str
    clean: float


def envelope(frames: Sequence[Frame], radii: Sequence[float]) -> tuple[EnvelopePoint, ...]:
    """Best of several logs per radius; of equals, the one with the higher clean accuracy."""
    table = [certified_accuracy(frame, [0.0, *radii]) for frame in frames]
    points = []
    for place, radius in enumerate(radii, start=1):
        best = max(range(len(frames)), key=lambda at: (table[at][place], table[at][0]))
        points.append(EnvelopePoint(radius, table[best][place], frames[best].name, table[best][0]))
    return tuple(points)


def groups(frames: Sequence[Frame]) -> dict[tuple[str, str, str], list[Frame]]:
    """Logs by dataset, method and architecture, ordered by sigma within a group."""
    found: dict[tuple[str, str, str], list[Frame]] = {}
    for frame in sorted(frames, key=lambda frame: (frame.group, frame.sigma or 0.0)):
        found.setdefault(frame.group, []).append(frame)
    return found
