"""Tables and plots of reports are held to what a terminal, a paper and the page do with them."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

from smoothctl.hooks.reports import ReportPlot, ReportTable
from smoothctl.reporting.assemble import Report, report
from smoothctl.reporting.output.drawing import save
from smoothctl.reporting.output.layout import Table

HEADER = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n"
IMAGES = 40


def tiny_report(logs: int = 2) -> Report:
    """A report of small logs over the same 40 images, a tenth of which are abstained from and a tenth wrong."""
    with tempfile.TemporaryDirectory() as name:
        for log in range(logs):
            (Path(name) / f"log{log + 1}_sigma_0.50.tsv").write_text(HEADER + "".join(map(_row(log), range(IMAGES))))
        return report(name)


def _row(log: int) -> Callable[[int], str]:
    def row(index: int) -> str:
        label = index % 4
        predict = {0: -1, 1: (label + 1) % 4}.get(index % 10, label)
        radius = 0.0 if predict < 0 else 0.05 + 0.04 * ((7 * index + log) % IMAGES)
        return f"{index}\t{label}\t{predict}\t{radius:.3f}\t{int(predict == label)}\t{1 + index / 10:.2f}\n"

    return row


def check_table(table: ReportTable, of: Report | None = None) -> None:
    """Hold a table of reports to what is done with it; raise AssertionError with what does not fit.

    Every row has a cell for each column, the same report gives the same tables, and they can be written as Markdown,
    LaTeX and CSV. ``of`` is a report that the table has something for; by default :func:`tiny_report`.
    """
    name, shown = table.name, of or tiny_report()
    assert table.summary, f"{name}: say in summary what it shows"
    built = list(table.build(shown))
    assert built, f"{name}: it shows nothing of this report; give one that it has something for"
    for one in built:
        assert isinstance(one, Table), f"{name}: build gave {type(one).__name__}, not smoothctl.Table"
        wrong = [len(row) for row in one.rows if len(row) != len(one.columns)]
        assert not wrong, f"{name}: a row of {wrong[:1]} cells under {len(one.columns)} columns"
        lines = list(csv.reader(io.StringIO(one.csv())))
        assert len(lines) == len(one.rows) + 1, f"{name}: as CSV it has {len(lines)} lines"
        assert one.markdown(), f"{name}: it cannot be written as Markdown"
        assert one.latex(), f"{name}: it cannot be written as LaTeX"
    again = [one.csv() for one in table.build(shown)]
    assert again == [one.csv() for one in built], f"{name}: the same report gives another table the second time"


def check_plot(plot: ReportPlot, of: Report | None = None) -> None:
    """Hold a plot of reports to what is done with it; raise AssertionError with what does not fit.

    It draws a figure with something in it, which can be saved as PNG, SVG and PDF, and tells those who do not see it
    what it shows. ``of`` is a report that the plot has something for; by default :func:`tiny_report`.
    """
    name, shown = plot.name, of or tiny_report()
    for part in ("summary", "caption", "description"):
        assert getattr(plot, part), f"{name}: it has no {part}"
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("png", "svg", "pdf"):
            figure = plot.draw(shown)
            assert figure.axes, f"{name}: the figure is empty"
            save(figure, Path(folder) / f"plot.{ending}")
