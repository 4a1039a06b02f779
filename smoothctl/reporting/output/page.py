"""A report as one HTML page that needs nothing else: no network, no scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smoothctl.base import console, files
from smoothctl.base.about import __version__
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.reporting import sources
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import metrics
from smoothctl.reporting.output import answer, document, parts, pictures, templates
from smoothctl.reporting.output.inline import inline_svg
from smoothctl.reporting.output.layout import Cell, Table, words

GENERATOR = '<meta name="generator" content="smoothctl">'


def write(report: Report, directory: Path, data: Path | None = None, source: pictures.Source | None = None) -> Path:
    """Write ``index.html`` into a directory, replacing an earlier page of ours; return its path.

    ``source`` is the dataset of logs that name none. Raises UsageError if another page lies there.
    """
    path = check_place(directory)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        strips, reason = pictures.strips(report.recorded, data, source), ""
    except SmoothctlError as error:
        strips, reason = [], console.worded(error)
        console.note(f"pictures are left out of the page: {reason}")
    text = render(report, reason, strips)
    files.replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return path


def check_place(directory: Path) -> Path:
    """Where the page goes; raises UsageError if that would replace something else."""
    path = directory / "index.html"
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"`out={directory}` is a file; name a folder for the page")
    if path.exists() and GENERATOR not in path.read_text(encoding="utf-8", errors="replace"):
        raise UsageError(f"{path} is not a page of smoothctl; choose another `out`")
    return path


def render(report: Report, no_pictures: str = "", strips: Sequence[pictures.Strip] = ()) -> str:
    """The page as text; ``no_pictures`` says why it has no pictures of images. What cannot be shown is named."""
    sections, problems = _tables(report)
    drawn, undrawn = _plots(report)
    found = answer.answer(report)
    return templates.render(
        "page.html",
        title=_title(report),
        lead=answer.lead(report, found),
        answer=found,
        acr=answer.acr_line(report.summaries),
        said=list(map(console.worded, [*report.said, *problems])),
        noted=list(map(console.worded, [*report.noted, *undrawn])),
        strips=strips,
        no_pictures=no_pictures,
        sections=sections,
        plots=drawn,
        facts=[(frame.name, _facts(frame)) for frame in (*report.recorded, *report.predicted)],
        guarantee=document.guarantee(report.summaries),
        version=__version__,
    )


def _title(report: Report) -> str:
    datasets = sorted({frame.group[0] for frame in report.recorded if frame.group[0]})
    return f"Certified robustness on {', '.join(datasets)}" if datasets else "Certified robustness"


def _tables(report: Report) -> tuple[dict[str, list[Table]], list[str]]:
    """The tables of each section; the other half says what cannot be shown."""
    found: dict[str, list[Table]] = {}
    problems = []
    for kind in parts.tables().values():
        tables, failures = parts.build([kind], report)
        found.setdefault(kind.section, []).extend(table for table in tables if table.rows)
        problems += failures
    return found, problems


def _plots(report: Report) -> tuple[list[dict[str, Any]], list[str]]:
    """The plots that the report has enough for; the other half says why the others are left out."""
    drawn, left_out = [], []
    for plot in parts.plots().values() if report.recorded else ():
        try:
            figure = plot.draw(report)
        except SmoothctlError as error:
            left_out.append(f"no plot of {plot.summary}: {error}")
            continue
        caption = plot.caption or plot.summary
        svg = inline_svg(figure, f"plot-{plot.name}", caption, plot.description or plot.summary)
        drawn.append({"caption": caption, "svg": templates.markup(svg)})
    return drawn, left_out


def _facts(frame: Frame) -> Table:
    """Settings, lineage and cost of one log."""
    facts: dict[str, object] = {f"certification: {key}": value for key, value in frame.settings.items()}
    for key in ("arch", "method", "method_options", "epochs", "seed"):
        if frame.model(key) not in (None, {}, ""):
            facts[f"model: {key}"] = frame.model(key)
    for place, teacher in enumerate(frame.model("lineage") or (), start=1):
        facts[f"teacher {place}"] = teacher
    for key, value in sources.training(frame).get("settings", {}).items():
        if value not in (None, {}, ""):
            facts[f"training: {key}"] = value
    facts |= cost(frame)
    rows = [[Cell(key), Cell(_shown(value))] for key, value in facts.items()]
    columns = [words("what"), words("value")]
    return Table(f"How {frame.name} was made", columns, rows or [[Cell("settings"), Cell("not recorded")]])


def cost(frame: Frame) -> dict[str, str]:
    """What training and certification took, as far as it is on record."""
    found = {}
    history = sources.history(frame)
    if history:
        found["cost: training"] = f"{console.duration(sum(line['seconds'] for line in history))}, {len(history)} epochs"
    seconds = frame.seconds[~(frame.seconds != frame.seconds)]
    if len(seconds):
        found[f"cost: {'certification' if frame.kind == 'certify' else 'prediction'}"] = (
            f"{console.duration(float(seconds.sum()))}, {seconds.mean():.3g} s an image"
        )
    samples = metrics.evaluations(frame)
    if samples is not None:
        found["cost: noise samples an image"] = f"{samples:,.0f}"
    return found


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
