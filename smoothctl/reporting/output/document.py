"""The report as plain data: one JSON document with unrounded figures (docs/report.md has its schema)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from smoothctl.base import console
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.measures import images, published
from smoothctl.reporting.measures.comparison import Comparison, EnvelopePoint
from smoothctl.reporting.measures.summary import RHO, Summary

VERSION = 1
GUARANTEE = (
    "Each radius holds with probability 1-alpha per image, for the smoothed classifier (not its base classifier), "
    "in the norm of its noise (L2 for gaussian), in units of pixels in [0,1]."
)


def guarantee(summaries: Sequence[Summary]) -> str:
    """What a radius means, and in which logs rounding of the noise is covered too."""
    certified = [summary for summary in summaries if summary.kind == "certify"]
    exact = [summary for summary in certified if str(summary.settings.get("arithmetic", "")).startswith("exact")]
    said = GUARANTEE
    if any(summary.settings.get("norm") == "l0" for summary in certified):
        said = f"{said[:-1]}; L0 radii count pixels, whatever becomes of them."
    if any(summary.settings.get("alpha") == 0 for summary in certified):
        said = f"{said[:-1]}; with alpha 0, where all values of the noise were evaluated, for images on their grid."
    names = list(dict.fromkeys(summary.name for summary in certified if summary not in exact))
    if not names:
        return f"{said} All were computed in exact arithmetic."
    which = "all logs" if not exact else ", ".join(names)
    return f"{said} Noise was added in floating point, whose rounding no proof covers, in {which}."


def build(
    summaries: Sequence[Summary],
    radii: Sequence[float],
    cautions: Sequence[str],
    rho: float = RHO,
    **extra: Any,
) -> dict[str, Any]:
    """Put everything together; ``extra`` are further entries, of plain data."""
    return {
        "version": VERSION,
        "radii": list(radii),
        "rho": rho,
        "certify": [plain(summary) for summary in summaries if summary.kind == "certify"],
        "predict": [plain(summary) for summary in summaries if summary.kind == "predict"],
        "cautions": list(cautions),
        "guarantee": guarantee(summaries),
        **extra,
    }


def plain(value: Summary | Comparison | EnvelopePoint | Any) -> dict[str, Any]:
    """A dataclass as JSON types."""
    return asdict(value)


def as_document(report: Report, problems: Sequence[str], parts: Collection[str]) -> dict[str, Any]:
    """The report as plain data."""
    extra: dict[str, Any] = {
        "problems": [*map(console.worded, problems)],
        "notes": [*map(console.worded, report.noted)],
    }
    if "envelope" in parts:
        extra["envelopes"] = [
            {"title": title, "points": [plain(point) for point in points]} for title, points in report.envelopes()
        ]
    if "compare" in parts and len(report.recorded) > 1:
        compared, failures = report.compared
        extra["comparisons"] = [plain(each) for each in compared]
        extra["not_compared"] = list(map(console.worded, failures))
    if "estimate" in parts:
        extra["estimates"] = [plain(each) for each in report.estimates]
    if "images" in parts:
        extra["images"] = [plain(image) for image in images.not_certified(report.recorded)] if report.recorded else []
    if report.against:
        extra["published"] = [_published(row) for row in report.published]
    return build(
        [*report.summaries, *report.predictions], report.radii, [*map(console.worded, report.said)], report.rho, **extra
    )


def _published(row: published.Published) -> dict[str, Any]:
    described = plain(row)
    return {**described, "certified": {f"{radius:g}": share for radius, share in row.certified.items()}}
