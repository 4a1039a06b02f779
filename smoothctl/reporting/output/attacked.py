"""Attacks beside certificates: their tables and their plot."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.figure import Figure

from smoothctl.base.errors import SmoothctlError
from smoothctl.records.attacks import AttackLog
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import metrics
from smoothctl.reporting.measures.attacks import attacks_on, robust_accuracy, successes
from smoothctl.reporting.output.drawing import GREY, add_legend, few, in_percent, make_axes, say_left_out, style_of
from smoothctl.reporting.output.layout import Cell, Table, figures, words


def _attacked(report: Report) -> list[tuple[Frame, AttackLog]]:
    found = ((frame, attacks_on(frame)) for frame in report.recorded)
    return [(frame, log) for frame, log in found if log is not None]


def tables(report: Report) -> list[Table]:
    """For each attacked log, success by multiples of the radius, and robust beside certified accuracy."""
    attacked = _attacked(report)
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


def plot(report: Report) -> Figure:
    """The fraction of attacks that changed the class, over the multiple of the certified radius."""
    attacked = few(_attacked(report))
    if not attacked:
        raise SmoothctlError("there are no attacks on these logs; make some with: smoothctl attack MODEL")
    figure, axes = make_axes("norm of the attack / certified radius", "attacks that changed the class")
    for place, (_, log) in enumerate(attacked):
        points = successes(log)
        axes.plot([at.multiple for at in points], [at.rate for at in points], marker="o", **style_of(place))
    in_percent(axes)
    axes.set_xlim(left=0)
    add_legend(axes, [frame.name for frame, _ in attacked])
    axes.axvline(1.0, color=GREY, linewidth=1.0)
    say_left_out(figure, len(_attacked(report)))
    return figure
