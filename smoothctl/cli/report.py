"""``smoothctl report``"""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smoothctl.base import console
from smoothctl.cli import options

if TYPE_CHECKING:
    from smoothctl.reporting.assemble import Report
    from smoothctl.reporting.output.layout import Table

NAME = "report"
EXAMPLES = (
    "Examples: `smoothctl report runs/teacher runs/student --show compare --plot curve=curves.pdf`; "
    "`smoothctl report log.tsv --radii 0,0.5,1 --format latex --against crt2022`; "
    "`smoothctl report runs --out report`; `smoothctl report runs/student --require 'acc@0.5>=0.6'`"
)


class Format(StrEnum):
    """How tables are written."""

    rich = "rich"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"
    json = "json"
    html = "html"


class Part(StrEnum):
    """Tables to show besides certified accuracy."""

    measures = "measures"
    bounds = "bounds"
    classes = "classes"
    envelope = "envelope"
    compare = "compare"
    all = "all"


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
    show: Annotated[
        list[Part] | None,
        options.option(
            "--show",
            help="More tables: measures; bounds (appendix D of Cohen et al.); classes; envelope (best of several "
            "sigmas); compare (paired, each log with the first); all. Repeatable.",
        ),
    ] = None,
    intervals: Annotated[bool, options.option("--intervals", help="Add 95 % intervals over images.")] = False,
    what_if: Annotated[
        list[str] | None,
        options.option(
            "--what-if",
            metavar="NAME=VALUE",
            help="Add the same run at another alpha=A or n=N (larger: a projection), or under an older "
            "bound=lecuyer2019 or bound=li2018. Repeatable.",
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        options.option(
            "--against",
            metavar="PAPER",
            help="Add published rows of the same dataset and sigma: cohen2019, crt2022, all.",
        ),
    ] = None,
    format: Annotated[Format, options.option("--format", help="How tables are written.")] = Format.rich,
    json: options.Json = False,
    plot: Annotated[
        list[str] | None,
        options.option(
            "--plot",
            metavar="KIND[=FILE]",
            help="Draw curve, envelope, ecdf, samples, alpha, bounds or learning to a .png, .svg or .pdf file. "
            "Repeatable.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        options.option(
            "--out", metavar="DIR", help="Write DIR/index.html, a page of everything that needs no network."
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        options.option(
            "--require",
            metavar="TEST",
            help="Exit with 3 unless every log meets it: acc@R, lcb@R, acr, abstain or clean, as in 'acc@0.5>=0.6'. "
            "Repeatable.",
        ),
    ] = None,
    rho: Annotated[
        float, options.option("--rho", help="Probability of failure of the bounds of --show bounds and lcb@R.")
    ] = 0.001,
    cost: Annotated[
        bool,
        options.option(
            "--cost", help="Report what training cost instead: time and passes per epoch, totals, what transfer saved."
        ),
    ] = False,
    baseline: Annotated[
        Path | None,
        options.option(
            "--baseline",
            metavar="RUN",
            help="With --cost: the directly trained run to compare with. [default: the first without a teacher]",
        ),
    ] = None,
    common_idx: Annotated[
        bool, options.option("--common-idx", help="Compare only the images that all logs hold.")
    ] = False,
    data: options.Data = None,
    strict: Annotated[bool, options.option("--strict", help="Exit with 1 if there is anything to warn of.")] = False,
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

    if baseline is not None and not cost:
        raise UsageError("--baseline belongs to --cost")
    if cost:
        given = {"--radii": radii, "--show": show, "--intervals": intervals, "--what-if": what_if, "--out": out,
                 "--against": against, "--plot": plot, "--require": require, "--common-idx": common_idx,
                 "--strict": strict}  # fmt: skip
        if other := [name for name, value in given.items() if value]:
            raise UsageError(f"--cost is a report of its own; leave out {', '.join(other)}")
        _show_cost(paths or [Path("runs")], baseline, Format.json if json else format)
        return
    if not 0 < rho < 1:
        raise UsageError(f"--rho {rho:g}: must lie between 0 and 1")
    tests = [gates.parse(text) for text in require or ()]
    changes = _changes(what_if or ())
    drawings = _drawings(plot or ())
    as_json = json or format is Format.json
    parts = _parts(show or ())
    if out is not None:
        from smoothctl.reporting.output import page

        page.check_place(out)
    places = paths or [Path("runs")]
    frames, problems = sources.read_logs(sources.find_logs(places))
    runs = sources.find_runs(places)
    for run in runs if not frames else ():
        console.note(f"{run.path} has no log yet; make one with: smoothctl certify {run.path}")
    report = assembling.assemble(
        frames,
        _radii(radii),
        common_idx=common_idx,
        what_if=changes,
        against=against or (),
        rho=rho,
        full=as_json or intervals or len(parts) > 2 or out is not None or format is Format.html,
        runs=runs,
    )
    for line in (*report.said, *problems):
        console.warn(line)
    for line in report.noted:
        console.note(line)
    _print(report, format, as_json, parts, intervals, problems)
    _draw(report, drawings)
    if out is not None:
        console.note(f"page: {page.write(report, out, data)}")
    if problems:
        raise SmoothctlError(f"{len(problems)} of {len(problems) + len(frames)} logs could not be reported, see above")
    _require(report, tests)
    if strict and report.said:
        raise SmoothctlError("--strict is set and there are warnings, see above")


def _show_cost(paths: list[Path], baseline: Path | None, format: Format) -> None:
    from smoothctl.reporting import costs

    runs = costs.find_runs(paths)
    direct = costs.choose_baseline(runs, baseline)
    if format is Format.json:
        console.result(json_format.dumps(costs.as_document(runs, direct), indent=2))
        return
    _print_tables(costs.tables(runs, direct), format)


def _print_tables(found: Sequence[Table], format: Format) -> None:
    if format is Format.rich:
        for table in found:
            table.show()
    elif found:
        written = {Format.markdown: "markdown", Format.latex: "latex", Format.csv: "csv", Format.html: "html"}[format]
        console.result("\n\n".join(getattr(table, written)() for table in found))


def _print(
    report: Report, format: Format, as_json: bool, parts: set[str], intervals: bool, problems: list[str]
) -> None:
    from smoothctl.reporting.output import document
    from smoothctl.reporting.output.tables import choose_tables

    if as_json:
        content = document.as_document(report, problems, parts)
        console.result(json_format.dumps(content, indent=2, allow_nan=False))
        return
    if format is Format.html:
        from smoothctl.reporting.output import page

        console.result(page.render(report, "pictures are left out on stdout; --out DIR has them"))
        return
    _print_tables(choose_tables(report, parts, intervals), format)
    if format is Format.rich and report.frames:
        console.note(document.guarantee(report.summaries))


def _draw(report: Report, drawings: list[tuple[str, Path]]) -> None:
    if not drawings:
        return
    from smoothctl.reporting.output import plots

    for kind, path in drawings:
        plots.save(plots.draw(kind, report), path)
        console.note(f"plot: {path}")


def _require(report: Report, tests: list[Any]) -> None:
    """Raise GateFailed with every requirement that is not met; what-ifs are not held to any."""
    from smoothctl.base.errors import GateFailed, SmoothctlError
    from smoothctl.reporting import gates

    logs = [*report.recorded, *report.predicted]
    if tests and not logs:
        raise SmoothctlError("--require: there is no log to hold against it")
    if unmet := gates.failures(tests, report.recorded or logs, report.rho):
        raise GateFailed(f"--require is not met: {'; '.join(unmet)}")


def _parts(show: Any) -> set[str]:
    chosen = {str(part) for part in show}
    if "all" in chosen:
        chosen |= {str(part) for part in Part}
    return (chosen | {"certified", "against"}) - {"all"}


def _changes(texts: Any) -> list[tuple[str, str]]:
    from smoothctl.reporting.measures import whatif

    changes = [next(iter(options.pairs([text], "--what-if").items())) for text in texts]
    for kind, value in changes:
        whatif.check(kind, value)
    return changes


def _drawings(texts: Any) -> list[tuple[str, Path]]:
    """Read ``KIND=FILE``, ``KIND`` alone (to KIND.png), or ``FILE`` alone (a curve)."""
    from smoothctl.reporting.output.kinds import check

    return [check(text) for text in texts]


def _radii(text: str | None) -> tuple[float, ...]:
    from smoothctl.base.errors import UsageError

    try:
        grid = tuple(float(part) for part in (text or "").replace(",", " ").split())
    except ValueError:
        raise UsageError(f"--radii {text}: write numbers such as 0,0.25,0.5") from None
    if any(not 0 <= radius < float("inf") for radius in grid):
        raise UsageError(f"--radii {text}: radii cannot be negative or infinite")
    return grid
