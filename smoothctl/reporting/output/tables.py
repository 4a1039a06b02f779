"""Tables of a report: what their columns are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal

from smoothctl.reporting.assemble import Report
from smoothctl.reporting.measures import published
from smoothctl.reporting.measures.comparison import Comparison, Difference, EnvelopePoint
from smoothctl.reporting.measures.published import Published
from smoothctl.reporting.measures.summary import Summary
from smoothctl.reporting.output.layout import Cell, Table, best

PARTS = ("certified", "measures", "bounds", "classes", "envelope", "compare", "against")
SETTINGS = ("run", "sigma", "n", "alpha", "images", "idx")


def radius_name(radius: float) -> str:
    """How a radius heads a column: ``r=0.25``."""
    return f"r={radius:.4g}" if round(radius * 100) != radius * 100 else f"r={radius:.2f}"


def percent(share: float | None) -> Cell:
    """A share as percent with two decimals; ``-`` where there is none."""
    return Cell("-") if share is None else Cell(f"{100 * share:.2f}", share)


def floored_percent(share: float) -> Cell:
    """A lower bound as percent with two decimals, rounded down: what is shown is proved too."""
    shown = (100 * Decimal(repr(share))).quantize(Decimal("0.01"), ROUND_FLOOR)
    return Cell(str(shown), share)


def radius(value: float | None) -> Cell:
    """A radius with four decimals."""
    return Cell("-") if value is None else Cell(f"{value:.4f}", value)


def certified(summaries: Sequence[Summary], radii: Sequence[float], intervals: bool = False) -> Table:
    """Certified accuracy at radii, ACR and abstention, one run a row; the best of a column is bold."""
    several = len({(summary.dataset, summary.method, summary.arch) for summary in summaries}) > 1
    group = ["dataset", "method", "arch"] if several else []
    rows = []
    for summary in summaries:
        kept = [Cell(text or "?") for text in (summary.dataset, summary.method, summary.arch)] if several else []
        accuracies = [percent(share) for share in summary.certified]
        if intervals:
            paired = zip(accuracies, summary.intervals, strict=True)
            accuracies = [_with_interval(cell, pair, 100, 1) for cell, pair in paired]
        acr = radius(summary.acr)
        if intervals and summary.acr_interval is not None:
            acr = _with_interval(acr, summary.acr_interval, 1, 3)
        figures = [*accuracies, acr, percent(summary.abstained)]
        # A what-if is no result, and does not compete for the best of a column.
        shown = [replace(cell, value=None) for cell in figures] if summary.note else figures
        rows.append([*kept, *_settings(summary), *shown])
    columns = [*group, *SETTINGS, *map(radius_name, radii), "ACR", "abstain"]
    first = len(group) + len(SETTINGS)
    return Table(
        "Certified accuracy (%) at radius r", columns, best(rows, range(first, first + len(radii) + 1)),
        texts=(*range(len(group) + 1), first - 1), note=_interval_note(intervals),
    )  # fmt: skip


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
        wrong = max(0.0, 1 - summary.accuracy - summary.abstained - summary.failed / summary.images)
        rows.append([*_settings(summary), *map(percent, (summary.accuracy, wrong, summary.abstained))])
    columns = [*SETTINGS, "accuracy", "wrong", "abstain"]
    return Table("Prediction logs, no radius column (%)", columns, best(rows, [len(SETTINGS)]), texts=(0, 5))


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
        "run", "clean %", "smoothed %", "abstain %", "ACR", "ACR 95 %", "ACR of a constant", "median p_A(label)",
        "evaluations/image", "s/image", "total h",
    ]  # fmt: skip
    note = (
        "clean: right and not abstaining (certified at radius 0); smoothed: leading class right. ACR of a constant: "
        "what one answer for every image would get at this sigma, n and alpha; do not judge by ACR alone."
    )
    return Table("Other measures", columns, rows, note=note)


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
    return Table(
        "High-probability lower bounds (%)", ["run", "bound", *map(radius_name, radii)], rows, texts=(0, 1), note=note
    )


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
    columns = ["class", "images", *map(radius_name, shown), "ACR", "abstain"]
    return Table(f"By class: {summary.title} (%)", columns, rows)


def envelope(title: str, points: Sequence[EnvelopePoint]) -> Table:
    """Best certified accuracy per radius, with the clean accuracy of the model that gives it."""
    rows = [
        [Cell(radius_name(point.radius)), percent(point.accuracy), percent(point.clean), Cell(point.name)]
        for point in points
    ]
    note = "Each radius is the best of several models, chosen after seeing these images: no one model has all of it."
    return Table(title, ["radius", "best", "its clean", "run"], rows, texts=(0, 3), note=note)


def comparisons(compared: Sequence[Comparison], radii: Sequence[float]) -> Table:
    """Paired differences in percentage points, with intervals and p-values."""
    rows = []
    for each in compared:
        name = f"{each.second} - {each.first}"
        cells = [_difference(part, 100, 2) for part in each.certified]
        acr = Cell("-") if each.acr is None else _difference(each.acr, 1, 4)
        rows.append([Cell(name), Cell(f"{each.images}"), Cell(each.subset), *cells, acr])
    note = (
        "difference [95 % interval] p-value, on shared images: points of certified accuracy (McNemar's exact test, "
        "Agresti and Min's interval) and ACR (paired t-test, bootstrap). Of many tests, one in twenty falls below "
        "0.05 by chance."
    )
    columns = ["second - first", "images", "idx", *map(radius_name, radii), "ACR"]
    return Table("Paired differences", columns, rows, texts=(0, 2), note=note)


def _difference(part: Difference, scale: float, digits: int) -> Cell:
    low, high = scale * part.low, scale * part.high
    return Cell(
        f"{scale * part.difference:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}] p={part.p_value:.2g}",
        part.difference,
    )


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
    columns = ["run", "source", "dataset", "sigma", "images", *map(radius_name, radii), "ACR", "train h"]
    cited = {row.paper for row in rows}
    note = " ".join(f"{paper}: {source}." for paper, source in sources.items() if paper in cited)
    return Table(
        "Beside published rows (%)", columns, best([*mine, *theirs], range(5, 6 + len(radii))), texts=(0, 1, 2),
        note=f"Published figures as printed. {note}",
    )  # fmt: skip


def choose_tables(report: Report, parts: Collection[str], intervals: bool = False) -> list[Table]:
    """The tables of these parts, in a fixed order; parts that have nothing to show are left out."""
    found = []
    several = len(report.recorded) > 1
    if report.frames:
        if "certified" in parts:
            found.append(certified(report.summaries, report.radii, intervals))
        if "measures" in parts:
            found.append(measures(report.summaries))
        if "bounds" in parts:
            found.append(lower_bounds(report.summaries, report.radii, report.rho))
        if "envelope" in parts:
            found += [envelope(title, points) for title, points in report.envelopes()]
        if "compare" in parts and several:
            found.append(comparisons(report.comparisons(), report.radii))
        if "against" in parts and report.against:
            mine = [summary for summary in report.summaries if not summary.note]
            found.append(against(mine, report.published, report.radii, published.load()[1]))
        if "classes" in parts:
            found += [classes(summary, report.radii) for summary in report.summaries]
    if report.predicted:
        found.append(predicted(report.predictions))
    return found
