"""``smoothctl report``"""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smoothctl.base import console
from smoothctl.base.settings import shown_as_flag
from smoothctl.cli import options
from smoothctl.reporting.settings import Format, ReportSettings

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


@options.with_flags
def command(
    settings: ReportSettings,
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
    from smoothctl.base.errors import SmoothctlError, UsageError
    from smoothctl.reporting import assemble as assembling
    from smoothctl.reporting import gates, sources
    from smoothctl.reporting.measures import published
    from smoothctl.reporting.output.parts import chosen_plot, chosen_tables

    out, format = settings.out, "json" if json else settings.format
    if settings.baseline is not None and not settings.cost:
        raise UsageError("--baseline belongs to --cost")
    if settings.cost:
        if other := sorted(set(settings.given()) - {"cost", "baseline", "format", "data", "rho"}):
            flags = ", ".join(shown_as_flag(ReportSettings, name) for name in other)
            raise UsageError(f"--cost is a report of its own; leave out {flags}")
        _show_cost(paths or [Path("runs")], settings.baseline, format)
        return
    tests = [gates.parse(text) for text in settings.require]
    changes = _changes(settings.what_if)
    drawings = [chosen_plot(text) for text in settings.plot]
    published.check(settings.against)
    parts = chosen_tables([*settings.show, *(["intervals"] if settings.intervals else [])])
    if out is not None:
        from smoothctl.reporting.output import page, pictures

        page.check_place(out)
    places = paths or [Path("runs")]
    frames, problems = sources.read_logs(sources.find_logs(places))
    runs = sources.find_runs(places)
    for run in runs if not frames else ():
        console.note(f"{run.path} has no log yet; make one with: smoothctl certify {run.path}")
    report = assembling.assemble(
        frames,
        settings.radii,
        common_idx=settings.common_idx,
        what_if=changes,
        against=settings.against,
        rho=settings.rho,
        full=format in ("json", "html") or bool(settings.show) or settings.intervals or out is not None,
        runs=runs,
    )
    for line in (*report.said, *problems):
        console.warn(line)
    for line in report.noted:
        console.note(line)
    unshown = _print(report, format, parts, settings, problems)
    unshown += _draw(report, drawings)
    if out is not None:
        source = None if settings.dataset is None else pictures.Source(settings.dataset, settings.split)
        console.note(f"page: {page.write(report, out, settings.data, source)}")
    if unshown:
        raise SmoothctlError("; ".join(unshown))
    if problems:
        raise SmoothctlError(f"{len(problems)} of {len(problems) + len(frames)} logs could not be reported, see above")
    _require(report, tests)
    if settings.strict and report.said:
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


def _print(
    report: Report, format: Format, kinds: list[ReportTable], settings: ReportSettings, problems: list[str]
) -> list[str]:
    """Print the report; return what of it could not be shown."""
    from smoothctl.reporting.output import document, parts

    if format == "json":
        content = document.as_document(report, problems, {kind.name for kind in kinds})
        console.result(json_format.dumps(content, indent=2, allow_nan=False))
        return []
    if format == "html":
        from smoothctl.reporting.output import page

        console.result(page.render(report, "pictures are left out on stdout; --out DIR has them"))
        return []
    # With intervals, the plain table would say the same twice.
    shown = [kind for kind in kinds if not (settings.intervals and kind.name == "certified")]
    tables, unshown = parts.build(shown, report, settings.show)
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


def _require(report: Report, tests: list[Any]) -> None:
    """Raise GateFailed with every requirement that is not met; what-ifs are not held to any."""
    from smoothctl.base.errors import GateFailed, SmoothctlError
    from smoothctl.reporting import gates, sources

    logs = [*report.recorded, *report.predicted]
    missing = sources.without_log(report.runs, logs) if tests else []
    if tests and not logs and not missing:
        raise SmoothctlError("--require: there is no log to hold against it")
    if unmet := gates.failures(tests, report.recorded or logs, report.rho, missing):
        raise GateFailed(f"--require is not met: {'; '.join(unmet)}")


def _changes(texts: Sequence[str]) -> list[tuple[str, str]]:
    from smoothctl.base.errors import UsageError
    from smoothctl.reporting.measures import whatif

    changes = []
    for text in texts:
        kind, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--what-if {text}: write it as name=value")
        whatif.check(kind.strip(), value.strip())
        changes.append((kind.strip(), value.strip()))
    return changes
