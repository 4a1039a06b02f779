"""A report as one HTML page that needs nothing else: no network, no scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from smoothctl.base import console, files
from smoothctl.base.about import __version__
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.reporting import sources
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import metrics
from smoothctl.reporting.output import document, pictures, plots, tables
from smoothctl.reporting.output.inline import inline_svg
from smoothctl.reporting.output.kinds import KINDS
from smoothctl.reporting.output.layout import Cell, Table, escape
from smoothctl.reporting.output.tables import PARTS, choose_tables

CAPTIONS = {
    "curve": "Certified accuracy over the radius",
    "envelope": "Best of several runs at each radius",
    "ecdf": "How sure the base classifier is of the true label",
    "samples": "With fewer or more noisy copies",
    "alpha": "With another alpha",
    "bounds": "Under older guarantees",
    "learning": "Training",
}
DESCRIPTIONS = {
    "curve": "Step curves that fall with the radius, one for each run. The figures are in the table of results.",
    "envelope": "The same curves with the highest of them at each radius marked in grey.",
    "ecdf": "Share of images, over the share of votes that the true label gets; lower curves are surer.",
    "samples": "Step curves of one run, thinned to smaller n and projected to a larger one.",
    "alpha": "Step curves of one run for several probabilities of error.",
    "bounds": "Step curves of one run under the guarantees of Cohen, Li and Lecuyer.",
    "learning": "Held-out accuracy above and training loss below, by epoch.",
}


GENERATOR = '<meta name="generator" content="smoothctl">'


def write(report: Report, directory: Path, data: Path | None = None) -> Path:
    """Write ``index.html`` into a directory, replacing an earlier page of ours; return its path.

    Raises UsageError if another page lies there.
    """
    path = check_place(directory)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        strips, reason = pictures.strips(report.recorded, data), ""
    except SmoothctlError as error:
        strips, reason = [], str(error)
        console.note(f"pictures are left out of the page: {reason}")
    text = render(report, reason, strips)
    files.replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return path


def check_place(directory: Path) -> Path:
    """Where the page goes; raises UsageError if that would replace something else."""
    path = directory / "index.html"
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"--out {directory} is a file; name a folder for the page")
    if path.exists() and GENERATOR not in path.read_text(encoding="utf-8", errors="replace"):
        raise UsageError(f"{path} is not a page of smoothctl; choose another --out")
    return path


def render(report: Report, no_pictures: str = "", strips: Sequence[pictures.Strip] = ()) -> str:
    """The page as text; ``no_pictures`` says why it has no pictures of images."""
    style = (resources.files("smoothctl.reporting.output") / "page.css").read_text(encoding="utf-8")
    sections = {
        "results": ("Results", _results(report)),
        "plots": ("Plots", _plots(report)),
        "images": ("Images", _strips(strips) if strips else f"<p>No pictures: {escape(no_pictures)}.</p>"),
        "published": ("Published rows", "".join(table.html() for table in choose_tables(report, {"against"})[:1])),
        "more": ("More figures", _more(report)),
        "settings": ("Settings, lineage and cost", _settings(report)),
    }
    if not report.against:
        del sections["published"]
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, (title, _) in sections.items())
    body = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>{content}</section>'
        for key, (title, content) in sections.items()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"{GENERATOR}"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(_title(report))}</title><style>\n{style}</style></head><body>"
        f'<header><h1>{escape(_title(report))}</h1><p class="lead">{escape(_lead(report))}</p>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header><main>{_cautions(report)}{body}</main>'
        f"<footer><p>{escape(document.guarantee(report.summaries))}</p>"
        f"<p>Made by smoothctl {__version__}.</p></footer></body></html>\n"
    )


def _title(report: Report) -> str:
    datasets = sorted({frame.group[0] for frame in report.recorded if frame.group[0]})
    return f"Certified robustness on {', '.join(datasets)}" if datasets else "Certified robustness"


def _lead(report: Report) -> str:
    parts = [(len(report.recorded), "certification log"), (len(report.predicted), "prediction log")]
    counted = " and ".join(f"{count} {what}{'s' if count > 1 else ''}" for count, what in parts if count)
    best = max(
        (summary for summary in report.summaries if not summary.note and summary.acr is not None),
        key=lambda summary: summary.acr or 0.0,
        default=None,
    )
    found = f"{counted}. Certified accuracy counts an image if its class is right and its radius at least r."
    if best is None:
        return found
    return (
        f"{found} The largest average certified radius is {best.acr:.4f} ({best.name}), with "
        f"{100 * best.accuracy:.2f} % of {best.images} images right at radius 0."
    )


def _cautions(report: Report) -> str:
    """What to know before comparing: warnings at once, what was inferred when asked for."""
    said = "".join(f"<li>{escape(line)}</li>" for line in report.said)
    noted = "".join(f"<li>{escape(line)}</li>" for line in report.noted)
    found = f'<div class="warn" role="note"><p>Before you compare</p><ul>{said}</ul></div>' if said else ""
    if noted:
        summary = f"What the radii of {len(report.noted)} logs without settings tell (marked ~ in tables)"
        found += f"<details><summary>{summary}</summary><ul>{noted}</ul></details>"
    return found


def _results(report: Report) -> str:
    first = {"certified", "envelope"}
    return "".join(table.html() for table in choose_tables(report, first, intervals=False))


def _more(report: Report) -> str:
    shown = [
        table
        for table in choose_tables(report, set(PARTS) - {"certified", "envelope", "classes", "against"})
        if table.rows
    ]
    shown = [table for table in shown if not table.title.startswith("Prediction logs")]
    certified = tables.certified(report.summaries, report.radii, intervals=True)
    classes = "".join(
        f"<details><summary>{escape(table.title)}</summary>{table.html()}</details>"
        for table in (tables.classes(summary, report.radii) for summary in report.summaries if not summary.note)
    )
    why = (
        "ACR is a mean: a few images with large radii outweigh many that are wrong, and a classifier with one answer "
        "for every image scores above zero. Read it with the accuracy at radius 0 and the curve."
    )
    whole = certified.html() if report.frames else ""
    return f"<p>{escape(why)}</p>{''.join(table.html() for table in shown)}{whole}{classes}"


def _plots(report: Report) -> str:
    drawn = []
    for kind in KINDS:
        if not report.recorded:
            continue
        try:
            figure = plots.draw(kind, report)
        except SmoothctlError:
            continue
        svg = inline_svg(figure, f"plot-{kind}", CAPTIONS[kind], DESCRIPTIONS[kind])
        drawn.append(f"<figure><figcaption>{escape(CAPTIONS[kind])}</figcaption>{svg}</figure>")
    return f'<div class="plots">{"".join(drawn)}</div>' if drawn else "<p>Nothing to plot.</p>"


def _strips(strips: Sequence[pictures.Strip]) -> str:
    found = []
    for strip in strips:
        shots = "".join(
            f'<figure class="shot"><img src="{shot.address}" alt="{escape(shot.alt)}">'
            f"<figcaption><b>{escape(shot.lines[0])}</b><br>{'<br>'.join(map(escape, shot.lines[1:]))}</figcaption>"
            "</figure>"
            for shot in strip.shots
        )
        found.append(f'<li><h3>{escape(strip.title)}</h3><div class="strip">{shots}</div></li>')
    note = "Each image clean, and with one draw of noise at the sigma of each run; values are clipped for display only."
    return f'<p class="note">{note}</p><ul class="strips">{"".join(found)}</ul>'


def _settings(report: Report) -> str:
    frames = [*report.recorded, *report.predicted]
    return "".join(
        f"<details{' open' if len(frames) == 1 else ''}><summary>{escape(frame.name)}</summary>"
        f"{_facts(frame).html()}</details>"
        for frame in frames
    )


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
    return Table(
        f"How {frame.name} was made", ["what", "value"], rows or [[Cell("settings"), Cell("not recorded")]], (0, 1)
    )


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
    copies = metrics.evaluations(frame)
    if copies is not None:
        found["cost: noisy copies an image"] = f"{copies:,.0f}"
    return found


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
