"""Attacks beside certificates: their tables."""

from __future__ import annotations

from collections.abc import Iterable

from smoothctl.records.attacks import AttackLog
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import metrics
from smoothctl.reporting.measures.attacks import attacks_on, robust_accuracy, successes
from smoothctl.reporting.output.layout import Cell, Table, figures, words


def attacked_logs(report: Report) -> list[tuple[Frame, AttackLog]]:
    found = ((frame, attacks_on(frame)) for frame in report.recorded)
    return [(frame, log) for frame, log in found if log is not None]


def tables(report: Report) -> list[Table]:
    """For each attacked log, success by multiples of the radius, and robust beside certified accuracy."""
    attacked = attacked_logs(report)
    return [success(frame.name, log) for frame, log in attacked] + [robust(report, *pair) for pair in attacked]


def success(name: str, log: AttackLog) -> Table:
    """How often attacks succeed at multiples of the certified radius."""
    columns = [figures("times the radius"), figures("attacks"), figures("changed"), figures("changed %"),
               figures("abstained"), figures("kept")]  # fmt: skip
    rows = [
        [
            Cell(f"{at.multiple:g}", at.multiple), *map(_count, (at.count, at.changed)),
            Cell(f"{100 * at.rate:.1f}", at.rate), *map(_count, (at.abstained, at.count - at.changed - at.abstained)),
        ]
        for at in successes(log)
    ]  # fmt: skip
    forward, backward = log.passes
    note = f"[{forward:,} forward and {backward:,} backward passes]"
    if len(log.images) < log.eligible:
        note += f" [{len(log.images)} of the {log.eligible} certified images were attacked]"
    return Table(f"Attacks on {name}", columns, rows, note=note, name="attacks")


def robust(report: Report, frame: Frame, log: AttackLog) -> Table:
    """Empirical robust accuracy, which attacks bound from above, beside certified accuracy, a lower bound."""
    columns = [words("accuracy (%)"), *(figures(f"{radius:g}", group="L2 radius") for radius in report.radii)]
    rows = [_row("certified", metrics.certified_accuracy(frame, report.radii))]
    if log.complete:
        rows.append(_row("empirical robust", robust_accuracy(frame, log, report.radii)))
    note = "[empirical robust: no attack of this norm or less changed the class of an image certified for its label]"
    return Table(
        f"Certified and empirical robust accuracy of {frame.name}", columns, rows, name="robust",
        note=note if log.complete else "[empirical robust accuracy needs attacks on every certified image]",
    )  # fmt: skip


def _row(name: str, accuracies: Iterable[float]) -> list[Cell]:
    return [Cell(name), *(Cell(f"{100 * value:.1f}", float(value)) for value in accuracies)]


def _count(value: int) -> Cell:
    return Cell(str(value), float(value))
