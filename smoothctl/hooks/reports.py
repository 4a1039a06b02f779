"""What a report is made of: tables and plots, each one object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from smoothctl.reporting.assemble import Report
    from smoothctl.reporting.output.layout import Table

Section = Literal["results", "published", "more", "details", ""]


@dataclass(frozen=True)
class ReportTable:
    """A kind of table, shown by ``--show NAME``.

    ``build(report)`` gives the tables, none if the report has nothing for them, and raises SmoothctlError if what was
    asked cannot be known. ``section`` is the place on the page ("" for none); ``always`` ones are shown unasked.
    """

    name: str
    build: Callable[[Report], Sequence[Table]]
    summary: str
    section: Section = "more"
    always: bool = False


@dataclass(frozen=True)
class ReportPlot:
    """A kind of plot, drawn by ``--plot NAME``.

    ``draw(report)`` gives a matplotlib figure, and raises SmoothctlError if the logs lack what it needs. On the page,
    ``caption`` stands above it and ``description`` tells what it shows to those who do not see it.
    """

    name: str
    draw: Callable[[Report], Figure]
    summary: str
    caption: str = ""
    description: str = ""
