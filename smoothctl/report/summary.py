"""What a command that wrote a log says at its end."""

from __future__ import annotations

import json
from typing import Any

from smoothctl import console
from smoothctl.records import Log
from smoothctl.report import tables
from smoothctl.report.metrics import Summary, default_radii, summarise


def show_log(log: Log, as_json: bool) -> None:
    """Print the figures of one log on stdout: a table, or one JSON document."""
    radii = default_radii([log])
    summary = summarise(log, log.path.parent.name or log.path.name, radii)
    if as_json:
        console.result(json.dumps(_document(log, summary, radii), indent=2, allow_nan=False))
        return
    if log.kind == "certify":
        console.table([tables.cells(summary)], tables.header(radii), title="certified accuracy (%) at radius r")
    else:
        console.table([tables.prediction_cells(summary)], tables.PREDICTION_HEADER, title="predictions (%)")
    if summary.abstained == 1:
        console.note("every image abstained: the classifier may be at chance under this noise, or n too small")
    console.result(f"log: {log.path}")


def _document(log: Log, summary: Summary, radii: tuple[float, ...]) -> dict[str, Any]:
    certified, predicted = ([summary], []) if log.kind == "certify" else ([], [summary])
    rows = [{**vars(row), "votes": {str(place): count for place, count in row.votes.items()}} for row in log.rows]
    return {"log": str(log.path), **tables.document(certified, predicted, radii, log.notices), "rows": rows}
