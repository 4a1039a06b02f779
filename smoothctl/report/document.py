"""The report as plain data: one JSON document with unrounded figures (docs/report.md has its schema)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from smoothctl.report.comparison import Comparison, EnvelopePoint
from smoothctl.report.summary import RHO, Summary

VERSION = 1
GUARANTEE = (
    "Each radius holds with probability 1-alpha per image, for the smoothed classifier (not its base classifier), "
    "in the norm of its noise (L2 for gaussian), in units of pixels in [0,1], subject to floating-point arithmetic."
)


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
        "guarantee": GUARANTEE,
        **extra,
    }


def plain(value: Summary | Comparison | EnvelopePoint | Any) -> dict[str, Any]:
    """A dataclass as JSON types."""
    return asdict(value)
