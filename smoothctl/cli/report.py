"""``smoothctl report``"""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smoothctl.base import console
from smoothctl.base.settings import shown_as_flag
from smoothctl.cli import options
from smoothctl.reporting.settings import Format, ReportOutput, ReportSettings

if TYPE_CHECKING:
    from smoothctl.hooks.reports import ReportPlot, ReportTable
    from smoothctl.reporting.assemble import Report
    from smoothctl.reporting.output.layout import Table

NAME = "report"
EXAMPLES = (
    "Examples: `smoothctl report runs/teacher runs/student --show compare --plot curve=curves.pdf`; "
    "`smoothctl report log.tsv --radii 0,0.5,1 --format latex --against crt2022`; "
    "`smoothctl report runs --out report`; `smoothctl report runs/student --require 'acc@0.5>=0.6'`"
)

OF_COST = ("cost", "baseline", "format", "data")
"""What a report of costs takes."""


@options.with_flags
def command(
    settings: ReportSettings,
    output: ReportOutput,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LOG|RUN]...", help="Logs, run directories, model files, or folders of them. [default: runs/]"
        ),
    ] = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Report certified accuracy at radii, average certified radius, abstention and more.

    Reads smoothctl's logs and those of earlier research code. Every image counts: one that
    abstained or is wrong is not certified at any radius, and comparisons use unrounded radii. Each
    radius holds with probability 1-alpha per image, for the smoothed classifier (not the base
    classifier), in the norm of the noise (L2 for gaussian), in units of pixels in [0,1].
    """
    from smoothctl.base.errors import GateFailed, SmoothctlError, UsageError
    from smoothctl.reporting import gates
    from smoothctl.reporting.assemble import report
    from smoothctl.reporting.output import parts

    format = "json" if json else output.format
    if output.baseline is not None and not output.cost:
        raise UsageError("--baseline belongs to --cost")
    if output.cost:
        other = [shown_as_flag(ReportSettings, name) for name in settings.given() if name != "rho"]
        other += [shown_as_flag(ReportOutput, name) for name in output.given() if name not in OF_COST]
        if other:
            raise UsageError(f"--cost is a report of its own; leave out {', '.join(sorted(other))}")
        _show_cost(paths or [Path("runs")], output.baseline, format)
        return
    for text in output.require:
        gates.parse(text)
    drawings = [parts.chosen_plot(text) for text in output.plot]
    kinds = parts.chosen_tables([*output.show, *(["intervals"] if output.intervals else [])])
    if output.out is not None:
        from smoothctl.reporting.output import page

        page.check_place(output.out)
    full = format in ("json", "html") or bool(output.show) or output.intervals or output.out is not None
    found = report(paths or [Path("runs")], settings=settings, full=full)
    unshown = _print(found, format, kinds, output)
    unshown += _draw(found, drawings)
    if output.out is not None:
        console.note(f"page: {found.write_page(output.out, output.data, output.dataset, output.split)}")
    if unshown:
        raise SmoothctlError("; ".join(unshown))
    if found.problems:
        whole = len(found.problems) + len(found.recorded) + len(found.predicted)
        raise SmoothctlError(f"{len(found.problems)} of {whole} logs could not be reported, see above")
    if unmet := found.unmet(*output.require):
        raise GateFailed(f"--require is not met: {'; '.join(unmet)}")
    if output.strict and found.said:
        raise SmoothctlError("--strict is set and there are warnings, see above")


def _show_cost(paths: list[Path], baseline: Path | None, format: Format) -> None:
    from smoothctl.reporting import costs

    runs = costs.find_runs(paths)
    direct = costs.choose_baseline(runs, baseline)
    if format == "json":
        console.result(json_format.dumps(costs.as_document(runs, direct), indent=2))
        return
    _print_tables(costs.tables(runs, direct), format)


def _print_tables(found: Sequence[Table], format: Format) -> None:
    if format == "rich":
        for table in found:
            table.show()
    elif found:
        console.result("\n\n".join(getattr(table, format)() for table in found))


def _print(report: Report, format: Format, kinds: list[ReportTable], output: ReportOutput) -> list[str]:
    """Print the report; return what of it could not be shown."""
    from smoothctl.reporting.output import document, parts

    if format == "json":
        content = document.as_document(report, report.problems, {kind.name for kind in kinds})
        console.result(json_format.dumps(content, indent=2, allow_nan=False))
        return []
    if format == "html":
        from smoothctl.reporting.output import page

        console.result(page.render(report, "pictures are left out on stdout; --out DIR has them"))
        return []
    # With intervals, the plain table would say the same twice.
    shown = [kind for kind in kinds if not (output.intervals and kind.name == "certified")]
    tables, unshown = parts.build(shown, report, output.show)
    _print_tables(tables, format)
    if format == "rich" and report.frames:
        console.note(document.guarantee(report.summaries))
    return unshown


def _draw(report: Report, drawings: list[tuple[ReportPlot, Path]]) -> list[str]:
    """Draw to files; return what could not be drawn."""
    if not drawings:
        return []
    from smoothctl.base.errors import SmoothctlError
    from smoothctl.reporting.output.drawing import save

    undrawn = []
    for plot, path in drawings:
        try:
            save(plot.draw(report), path)
        except SmoothctlError as error:
            undrawn.append(f"--plot {plot.name}: {error}")
        else:
            console.note(f"plot: {path}")
    return undrawn
