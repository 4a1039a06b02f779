"""Two logs on the images that they share, and the best of several per radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
    """Second minus first, its interval over images, and the p-value of no difference."""

    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class Comparison:
    """Two logs on ``images`` shared images; ``certified`` by radius; ``acr`` None where it is none."""

    first: str
    second: str
    images: int
    subset: str
    certified: tuple[Difference, ...]
    acr: Difference | None


def compare(first: Frame, second: Frame, radii: Sequence[float]) -> Comparison:
    """Paired differences of certified accuracy and ACR.

    Raises SmoothctlError for logs whose labels differ, and UsageError for logs that share no image.
    """
    a, b = shared_images([first, second])
    clash = np.flatnonzero(a.label != b.label)
    if len(clash):
        at = clash[0]
        raise SmoothctlError(
            f"idx {a.idx[at]} has label {a.label[at]} in {first.path} and {b.label[at]} in {second.path}: "
            "the logs are not of the same images and cannot be compared image by image"
        )
    acr = None
    if average_certified_radius(a) is not None and average_certified_radius(b) is not None:
        acr = _mean_difference(np.maximum(b.proved, 0.0) - np.maximum(a.proved, 0.0))
    return Comparison(
        first.name, second.name, len(a), subset(a.idx),
        tuple(difference_of_shares(a.proved >= radius, b.proved >= radius) for radius in radii), acr,
    )  # fmt: skip


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
    gained, lost = int((second & ~first).sum()), int((first & ~second).sum())
    total = len(first) + 2
    spread = math.sqrt(max(0.0, gained + lost + 1 - (gained - lost) ** 2 / total)) / total
    reach = float(stats.norm.ppf((1 + confidence) / 2)) * spread
    middle = (gained - lost) / total
    p_value = stats.binomtest(gained, gained + lost, 0.5).pvalue if gained + lost else 1.0
    return Difference((gained - lost) / len(first), max(-1.0, middle - reach), min(1.0, middle + reach), float(p_value))


def _mean_difference(values: np.ndarray) -> Difference:
    """Mean of paired differences: bootstrap interval and paired t-test."""
    low, high = mean_interval(values)
    constant = bool(np.all(values == values[0]))
    if constant:
        p_value = 1.0 if values[0] == 0 or len(values) < 2 else 0.0
    else:
        p_value = float(stats.ttest_1samp(values, 0.0).pvalue)
    return Difference(float(np.mean(values)), low, high, p_value)


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
