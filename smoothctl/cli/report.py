"""``smoothctl report``"""

from __future__ import annotations

import json as json_format
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from smoothctl import console
from smoothctl.cli import options

NAME = "report"
EXAMPLES = (
    "Examples: `smoothctl report runs/teacher runs/student --plot curves.png`; "
    "`smoothctl report log.tsv --radii 0,0.5,1 --format markdown`"
)


class Format(StrEnum):
    """How tables are written."""

    rich = "rich"
    markdown = "markdown"
    csv = "csv"
    json = "json"


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LOG|RUN]...", help="Logs, run directories, model files, or folders of them. [default: runs/]"
        ),
    ] = None,
    radii: Annotated[
        str | None,
        options.option(
            "--radii", metavar="R,R,...", help="Radii of the table. [default: 0, 0.25, ... as far as any radius goes]"
        ),
    ] = None,
    format: Annotated[Format, options.option("--format", help="How the table is written.")] = Format.rich,
    json: options.Json = False,
    plot: Annotated[
        Path | None, options.option("--plot", metavar="FILE", help="Draw the curves to a .png, .svg or .pdf file.")
    ] = None,
    common_idx: Annotated[
        bool, options.option("--common-idx", help="Compare only the images that all logs hold.")
    ] = False,
    strict: Annotated[bool, options.option("--strict", help="Exit with 1 if there is anything to warn of.")] = False,
    config: options.Config = None,
) -> None:
    """Report certified accuracy at radii, average certified radius and abstention.

    Reads smoothctl's logs and those of earlier research code. Every image counts: one that
    abstained or is wrong is not certified at any radius, and comparisons use unrounded radii. Each
    radius holds with probability 1-alpha per image, for the smoothed classifier, in units of
    pixels in [0,1].
    """
    from smoothctl.errors import SmoothctlError
    from smoothctl.report import metrics, sources, tables

    grid = _radii(radii)
    if plot is not None:
        from smoothctl.report.plots import check_ending, plot_curves

        check_ending(plot)
    logs, problems = sources.read_logs(sources.find_logs(paths or [Path("runs")]))
    if common_idx and logs:
        logs = sources.common_images(logs)
    said = sources.cautions(logs)
    for line in (*said, *problems):
        console.warn(line)
    certified = [log for log in logs if log.kind == "certify"]
    predicted = [log for log in logs if log.kind == "predict"]
    names = dict(zip([log.path for log in logs], sources.names(logs), strict=True))
    grid = grid or metrics.default_radii(certified)
    rows = [metrics.summarise(log, names[log.path], grid) for log in certified]
    others = [metrics.summarise(log, names[log.path], ()) for log in predicted]
    if json or format is Format.json:
        document = tables.document(rows, others, grid, [*said, *problems])
        console.result(json_format.dumps(document, indent=2, allow_nan=False))
    else:
        if rows:
            _show(
                format, tables.header(grid), [tables.cells(row) for row in rows], "certified accuracy (%) at radius r"
            )
        if others:
            _show(
                format,
                tables.PREDICTION_HEADER,
                [tables.prediction_cells(row) for row in others],
                "prediction logs, no radius column (%)",
            )
        if rows and format is Format.rich:
            console.note(tables.GUARANTEE)
    if plot is not None:
        if not certified:
            raise SmoothctlError("there is no certification log to plot")
        plot_curves(certified, [names[log.path] for log in certified], plot)
        console.note(f"plot: {plot}")
    if problems:
        raise SmoothctlError(f"{len(problems)} of {len(problems) + len(logs)} logs could not be reported, see above")
    if strict and said:
        raise SmoothctlError("--strict is set and there are warnings, see above")


def _radii(text: str | None) -> tuple[float, ...]:
    from smoothctl.errors import UsageError

    try:
        grid = tuple(float(part) for part in (text or "").replace(",", " ").split())
    except ValueError:
        raise UsageError(f"--radii {text}: write numbers such as 0,0.25,0.5") from None
    if any(not 0 <= radius < float("inf") for radius in grid):
        raise UsageError(f"--radii {text}: radii cannot be negative or infinite")
    return grid


def _show(format: Format, header: list[str], rows: list[list[str]], title: str) -> None:
    from smoothctl.report import tables

    if format is Format.markdown:
        console.result(tables.markdown(header, rows))
    elif format is Format.csv:
        console.result(tables.comma_separated(header, rows))
    else:
        console.table(rows, header, title)
