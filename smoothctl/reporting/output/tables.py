"""Tables of a report: what their columns are. Each kind is one object, in the list at the end."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.reports import ReportTable
from smoothctl.reporting import sources
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.measures import images as by_image
from smoothctl.reporting.measures import published
from smoothctl.reporting.measures.published import Published
from smoothctl.reporting.measures.summary import Summary
from smoothctl.reporting.output import attacked
from smoothctl.reporting.output.cells import (
    ACR,
    floored_percent,
    percent,
    radius,
    radius_columns,
)
from smoothctl.reporting.output.comparison_tables import comparisons, envelope, estimated
from smoothctl.reporting.output.layout import Cell, Table, best, figures, words

SETTINGS = (
    words("run", paper=""), figures("sigma", paper=r"$\sigma$"), figures("n", 7, ""), figures("alpha", 8, ""),
    figures("images", 6, ""), words("idx", 9, ""),
)  # fmt: skip


def certified(
    summaries: Sequence[Summary],
    radii: Sequence[float],
    intervals: bool = False,
    norm: str = "l2",
    alike: Sequence[Hashable | None] | None = None,
) -> Table:
    """Certified accuracy at radii, ACR and abstention, one run a row; the best of those that are ``alike`` is bold."""
    keys = ("dataset", "method", "arch")
    several = len({(summary.dataset, summary.method, summary.arch) for summary in summaries}) > 1
    group = (
        [words(key, 5) for key in keys] if several else [words(key, 9) for key in ("method",) if _any(summaries, key)]
    )
    rows = []
    for summary in summaries:
        run, *settings = _settings(summary)
        kept = [Cell(getattr(summary, column.name) or "?") for column in group]
        accuracies = [percent(share) for share in summary.certified]
        if intervals:
            paired = zip(accuracies, summary.intervals, strict=True)
            accuracies = [_with_interval(cell, pair, 100, 1) for cell, pair in paired]
        acr = radius(summary.acr)
        if intervals and summary.acr_interval is not None:
            acr = _with_interval(acr, summary.acr_interval, 1, 3)
        shown = [*accuracies, acr, percent(summary.abstained)]
        # A what-if is no result, and does not compete for the best of a column.
        shown = [replace(cell, value=None) for cell in shown] if summary.note else shown
        rows.append([run, *kept, *settings, *shown])
    columns = [SETTINGS[0], *group, *SETTINGS[1:], *radius_columns(radii, norm), ACR, figures("abstain", 5, "")]
    first = len(group) + len(SETTINGS)
    return Table(
        f"Certified accuracy (%) at {norm.upper()} radius r", columns,
        best(rows, range(first, first + len(radii) + 1), alike), note=_interval_note(intervals),
        name=f"certified-{norm}", caption="Certified accuracy and average certified radius (ACR).",
    )  # fmt: skip


def _any(summaries: Sequence[Summary], key: str) -> bool:
    return any(getattr(summary, key) for summary in summaries)


def _interval_note(intervals: bool) -> str:
    return "[95 % intervals over images: exact binomial for shares, bootstrap for ACR]" if intervals else ""


def _with_interval(cell: Cell, pair: tuple[float, float], scale: float, digits: int) -> Cell:
    return Cell(f"{cell.text} [{scale * pair[0]:.{digits}f}, {scale * pair[1]:.{digits}f}]", cell.value)


def _settings(summary: Summary) -> list[Cell]:
    """Name, sigma, n, alpha, number of images and subset; ``~`` marks what was inferred from the radii."""
    shown = []
    for key in ("sigma", "n", "alpha"):
        value = summary.settings.get(key)
        mark = "~" if key in summary.guessed else ""
        shown.append(Cell("?" if value is None else f"{mark}{value:.6g}"))
    whole = summary.planned in (None, summary.images)
    count = f"{summary.images}" if whole else f"INCOMPLETE {summary.images}/{summary.planned}"
    return [Cell(summary.title), *shown, Cell(count), Cell(summary.subset)]


def predicted(summaries: Sequence[Summary]) -> Table:
    """Prediction logs: shares in percent."""
    rows = []
    for summary in summaries:
        abstained = summary.abstained or 0.0
        wrong = max(0.0, 1 - summary.accuracy - abstained - summary.failed / summary.images)
        rows.append([*_settings(summary), *map(percent, (summary.accuracy, wrong, summary.abstained))])
    columns = [*SETTINGS, figures("accuracy"), figures("wrong"), figures("abstain")]
    return Table("Prediction logs, no radius column (%)", columns, best(rows, [len(SETTINGS)]), name="predictions")


def measures(summaries: Sequence[Summary]) -> Table:
    """What one log tells besides certified accuracy."""
    rows = [
        [
            Cell(summary.title), percent(summary.accuracy), percent(summary.smoothed_accuracy),
            percent(summary.abstained), radius(summary.acr), _pair(summary.acr_interval),
            radius(summary.acr_of_constant),
            _plain(summary.label_probability["q0.50"] if summary.label_probability else None, 4),
            _plain(summary.evaluations, 0), _plain(summary.seconds, 3),
            _plain(None if summary.seconds is None else summary.seconds * summary.images / 3600, 2),
        ]
        for summary in summaries
    ]  # fmt: skip
    columns = [
        words("run"), figures("clean %"), figures("smoothed %", 3), figures("abstain %", 4), ACR,
        figures("ACR 95 %", 2), figures("ACR of a constant", 5), figures("median p_A(label)", 6),
        figures("evaluations/image", 7), figures("s/image", 8), figures("total h", 8),
    ]  # fmt: skip
    note = (
        "clean: right and not abstaining (certified at radius 0); smoothed: leading class right. ACR of a constant: "
        "what one answer for every image would get at this sigma, n and alpha; do not judge by ACR alone."
    )
    return Table("Other measures", columns, rows, note=note, name="measures")


def _pair(pair: tuple[float, float] | None) -> Cell:
    return Cell("-") if pair is None else Cell(f"[{pair[0]:.4f}, {pair[1]:.4f}]")


def _plain(value: float | None, digits: int) -> Cell:
    return Cell("-") if value is None else Cell(f"{value:.{digits}f}", value)


def lower_bounds(summaries: Sequence[Summary], radii: Sequence[float], rho: float) -> Table:
    """The two bounds of appendix D beside the plain certified accuracy."""
    rows = []
    for summary in summaries:
        lines = (
            ("certified", summary.certified),
            ("Bernstein", summary.lower_bernstein),
            ("exact", summary.lower_binomial),
        )
        rows += [
            [Cell(summary.title), Cell(what), *map(percent if what == "certified" else floored_percent, shares)]
            for what, shares in lines
            if shares is not None and summary.lower_binomial is not None
        ]
    note = (
        f"Certified accuracy on these images that holds with probability {1 - rho:g} over the noise, if the noise is "
        "independent across images (Cohen et al. 2019, appendix D)."
    )
    columns = [words("run"), words("bound"), *radius_columns(radii)]
    return Table("High-probability lower bounds (%)", columns, rows, note=note, name="bounds")


def classes(summary: Summary, radii: Sequence[float]) -> Table:
    """One log class by class."""
    rows = [
        [
            Cell(part.name), Cell(str(part.images)), *map(percent, part.certified), radius(part.acr),
            percent(part.abstained),
        ]
        for part in summary.classes
    ]  # fmt: skip
    shown = radii if summary.kind == "certify" else ()
    columns = [words("class"), figures("images", 6), *radius_columns(shown), ACR, figures("abstain", 5)]
    return Table(f"By class: {summary.title} (%)", columns, rows, name=f"classes-{summary.name}")


def against(
    summaries: Sequence[Summary], rows: Sequence[Published], radii: Sequence[float], sources: Mapping[str, str]
) -> Table:
    """The user's runs and published rows of the same kind, one below the other."""
    mine = [
        [
            Cell(summary.title), Cell("this report"), Cell(summary.dataset or "?"), *_settings(summary)[1:2],
            Cell(f"{summary.images}"), *map(percent, summary.certified), radius(summary.acr), Cell("-"),
        ]
        for summary in summaries
    ]  # fmt: skip
    theirs = [
        [
            Cell(row.name), Cell(f"{row.paper} {row.table}"), Cell(row.dataset), Cell(f"{row.sigma:g}"),
            Cell(row.images), *(percent(row.accuracy(value)) for value in radii), radius(row.acr),
            _plain(row.hours, 2),
        ]
        for row in rows
    ]  # fmt: skip
    columns = [
        words("run"), words("source", 7), words("dataset", 6), figures("sigma", paper=r"$\sigma$"),
        figures("images", 8, ""), *radius_columns(radii), ACR, figures("train h", 5),
    ]  # fmt: skip
    cited = {row.paper for row in rows}
    note = " ".join(f"{paper}: {source}." for paper, source in sources.items() if paper in cited)
    return Table(
        "Beside published rows (%)", columns, best([*mine, *theirs], range(5, 6 + len(radii))),
        note=f"Published figures as printed. {note}", name="published",
    )  # fmt: skip


def _certified(report: Report, intervals: bool = False) -> list[Table]:
    """A table for each norm, since radii in several cannot stand in one column."""
    found = []
    for norm, places in report.norms.items():
        keys = [sources.alike(report.frames[at]) for at in places]
        found.append(certified([report.summaries[at] for at in places], report.radii, intervals, norm, keys))
    return found


def _compared(report: Report) -> list[Table]:
    if len(report.recorded) < 2:
        return []
    compared, failures = report.compared
    if not compared and failures:
        raise SmoothctlError("; ".join(failures))
    return [comparisons(compared, report.radii, failures)] if compared else []


def _against(report: Report) -> list[Table]:
    mine = [summary for summary in report.summaries if not summary.note]
    return [against(mine, report.published, report.radii, published.load()[1])] if report.against else []


def images(report: Report) -> list[Table]:
    """The images that some log does not certify, and those that flip between logs first."""
    if not report.recorded:
        return []
    shown = by_image.not_certified(report.recorded)
    columns = [figures("idx"), words("label"), *(words(frame.name) for frame in report.recorded)]
    rows = [[Cell(str(image.idx)), Cell(image.label), *map(Cell, image.decisions)] for image in shown]
    flips = sum(image.flips for image in shown)
    note = f"[{len(shown)} images that some log does not certify" + (
        f", {flips} of which flip between logs]" if flips else "]"
    )
    return [Table("Images not certified", columns, rows, note=note, name="images")]


def _estimated(report: Report) -> list[Table]:
    return [estimated(report.estimates, report.radii)] if report.estimates else []


def _classes(report: Report) -> list[Table]:
    return [classes(summary, report.radii) for summary in report.summaries if not summary.note]


TABLES = (
    ReportTable("certified", _certified, "certified accuracy at radii, ACR and abstention", "results", always=True),
    ReportTable(
        "intervals", lambda report: _certified(report, True), "the same with 95 % intervals over images", "more"
    ),
    ReportTable(
        "measures", lambda report: [measures(report.summaries)] if report.frames else [],
        "accuracy without abstention, ACR and its interval, ACR of a constant, cost",
    ),
    ReportTable(
        "bounds", lambda report: [lower_bounds(report.summaries, report.radii, report.rho)] if report.frames else [],
        "lower bounds that hold for all images together (appendix D of Cohen et al. 2019)",
    ),
    ReportTable(
        "envelope", lambda report: [envelope(title, points) for title, points in report.envelopes()],
        "best of several logs per radius", "results",
    ),
    ReportTable("compare", _compared, "differences between each log and the first, with tests"),
    ReportTable(
        "estimate", _estimated,
        "a large n for all images, estimated from a log of all at a small n and one of some at a large n",
    ),
    ReportTable("against", _against, "published rows beside one's own", "published", always=True),
    ReportTable("attacks", attacked.tables, "attacks within and beyond certified radii", "results", always=True),
    ReportTable("classes", _classes, "class by class", "details"),
    ReportTable("images", images, "the images that are not certified, or flip between logs", "details"),
    ReportTable(
        "predictions", lambda report: [predicted(report.predictions)] if report.predicted else [],
        "accuracy of prediction logs", "results", always=True,
    ),
)  # fmt: skip
