"""What whoever has to decide asks first: how many images are safe against what."""

from __future__ import annotations

import math
from dataclasses import dataclass

from smoothctl.hooks.noises import NORMS, stretch
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures.summary import Summary

MOST = 4
STEPS = 255


@dataclass(frozen=True)
class Safe:
    """``count`` images keep their right class under every change up to ``radius``, which ``means`` illustrates."""

    radius: float
    count: int
    share: float
    means: str


@dataclass(frozen=True)
class Answer:
    """The log that certifies most on average, and what it says; ``wrong`` and ``abstained`` are counts of images."""

    name: str
    norm: str
    images: int
    right: int
    abstained: int | None
    safe: tuple[Safe, ...]
    alpha: float | None


def answer(report: Report) -> Answer | None:
    """The answer of the best log that is no what-if; None without certification logs."""
    known = [
        (summary, frame) for summary, frame in zip(report.summaries, report.frames, strict=True) if not summary.note
    ]
    if not known:
        return None
    summary, frame = max(known, key=lambda pair: (pair[0].acr or 0.0, pair[0].accuracy))
    rows = [
        Safe(radius, round(share * summary.images), share, _in_pixels(radius, frame))
        for radius, share in zip(report.radii, summary.certified, strict=True)
        if radius > 0 and share > 0
    ]
    abstained = None if summary.abstained is None else round(summary.abstained * summary.images)
    return Answer(
        summary.title, frame.norm.upper(), summary.images, round(summary.accuracy * summary.images), abstained,
        tuple(_spread(rows)), frame.alpha,
    )  # fmt: skip


def _spread(rows: list[Safe]) -> list[Safe]:
    """A few of many radii, from the least to the largest."""
    if len(rows) <= MOST:
        return rows
    places = sorted({round(at * (len(rows) - 1) / (MOST - 1)) for at in range(MOST)})
    return [rows[at] for at in places]


def _in_pixels(radius: float, frame: Frame) -> str:
    """What a radius is for an image of the model's shape: the same step at every value."""
    values = frame.values
    if values is None or frame.norm not in NORMS:
        return ""
    # Rounded down, so that what is said is proved too.
    steps = math.floor(10 * STEPS * radius / stretch(frame.norm, "linf", values)) / 10
    return f"every value by {steps:.1f} of {STEPS} steps" + (", or a few by more" if frame.norm != "linf" else "")


def lead(report: Report, found: Answer | None) -> str:
    """One sentence on what the page is of."""
    parts = [(len(report.recorded), "certification log"), (len(report.predicted), "prediction log")]
    counted = " and ".join(f"{count} {what}{'s' if count > 1 else ''}" for count, what in parts if count)
    if found is None or len(report.recorded) < 2:
        return f"{counted}."
    return f"{counted}. The answer below is of {found.name}, which has the largest average certified radius."


def acr_line(summaries: list[Summary]) -> str:
    """The largest average certified radius, for those who compare."""
    best = max((each for each in summaries if not each.note and each.acr is not None), key=lambda each: each.acr or 0.0,
               default=None)  # fmt: skip
    if best is None:
        return ""
    return f"The largest average certified radius (ACR) is {best.acr:.4f} ({best.name})."
