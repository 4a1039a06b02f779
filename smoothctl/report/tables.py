"""Summaries as tables: for a terminal, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from smoothctl.report.metrics import Summary

GUARANTEE = (
    "Each radius holds with probability 1-alpha per image, for the smoothed classifier (not its base classifier), "
    "in the norm of its noise (L2 for gaussian), in units of pixels in [0,1], subject to floating-point arithmetic."
)


def header(radii: Sequence[float]) -> list[str]:
    """Column names of :func:`cells`."""
    grid = [f"r={radius:.4g}" if radius % 0.25 else f"r={radius:.2f}" for radius in radii]
    return ["run", "sigma", "n", "alpha", "images", "idx", *grid, "ACR", "abstain"]


def cells(summary: Summary) -> list[str]:
    """One certification log: accuracies and abstention in percent, ACR in units of pixels."""
    return [
        *_settings_cells(summary),
        *(f"{100 * share:.2f}" for share in summary.certified),
        f"{summary.acr:.4f}",
        f"{100 * summary.abstained:.2f}",
    ]


PREDICTION_HEADER = ["run", "sigma", "n", "alpha", "images", "idx", "accuracy", "wrong", "abstain"]


def prediction_cells(summary: Summary) -> list[str]:
    """One prediction log: shares in percent."""
    failed = summary.failed / summary.images
    wrong = max(0.0, 1 - summary.accuracy - summary.abstained - failed)
    return [
        *_settings_cells(summary),
        *(f"{100 * share:.2f}" for share in (summary.accuracy, wrong, summary.abstained)),
    ]


def _settings_cells(summary: Summary) -> list[str]:
    settings = summary.settings
    whole = summary.planned in (None, summary.images)
    return [
        summary.name,
        *(f"{settings[key]:g}" if key in settings else "?" for key in ("sigma", "n", "alpha")),
        f"{summary.images}" if whole else f"{summary.images}/{summary.planned}",
        summary.subset,
    ]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a README or an issue."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def comma_separated(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a spreadsheet."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue().rstrip("\n")


def document(
    certified: Sequence[Summary], predicted: Sequence[Summary], radii: Sequence[float], said: Sequence[str]
) -> dict[str, Any]:
    """Everything as plain data, with unrounded figures (docs/formats.md describes it)."""
    return {
        "radii": list(radii),
        "certify": [_plain(summary) for summary in certified],
        "predict": [_plain(summary) for summary in predicted],
        "cautions": list(said),
        "guarantee": GUARANTEE,
    }


def _plain(summary: Summary) -> dict[str, Any]:
    return {**asdict(summary), "certified": list(summary.certified)}
