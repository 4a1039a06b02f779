"""The tables and plots that there are: the report's own, and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from smoothctl.base import console
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.registry import registry
from smoothctl.hooks.reports import ReportPlot, ReportTable
from smoothctl.hooks.specs import PROJECT
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.output.layout import Table

ENDINGS = (".png", ".svg", ".pdf")
ALL = "all"


def _from_elsewhere(kind: str) -> tuple[Any, ...]:
    """What other packages register of a kind; their plugins are loaded only if there are any."""
    outside = [point for point in entry_points(group=PROJECT) if getattr(point.dist, "name", None) != PROJECT]
    return tuple(entry.value for entry in registry(kind).all(kind)) if outside else ()


def tables() -> dict[str, ReportTable]:
    """Every kind of table, in the order in which they are shown."""
    from smoothctl.reporting.output.tables import TABLES

    return _by_name("table", (*TABLES, *_from_elsewhere("table")))


def plots() -> dict[str, ReportPlot]:
    """Every kind of plot, in the order in which the page shows them."""
    from smoothctl.reporting.output.plots import PLOTS

    return _by_name("plot", (*PLOTS, *_from_elsewhere("plot")))


def _by_name(kind: str, values: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for value in values:
        if value.name in (*found, ALL):
            raise SmoothctlError(
                f"the {kind} name {value.name!r} is taken; the plugin that registers it again is at fault"
            )
        found[value.name] = value
    return found


def chosen_tables(names: Iterable[str]) -> list[ReportTable]:
    """The tables of these names, and those that are always shown; raises UsageError for a name that is none."""
    known, asked = tables(), set(names)
    if unknown := sorted(asked - {*known, ALL}):
        raise UsageError(f"`show={unknown[0]}`: choose {', '.join(name for name in known if name)} or {ALL}")
    return [table for table in known.values() if table.always or table.name in asked or ALL in asked]


def chosen_plot(text: str) -> tuple[ReportPlot, Path]:
    """Read ``KIND=FILE``, ``KIND`` (to KIND.png), or ``FILE`` (of the first kind); raises UsageError for others."""
    known = plots()
    kind, equals, name = text.partition("=")
    if not equals:
        kind, name = (text, f"{text}.png") if text in known else (next(iter(known)), text)
    if kind not in known:
        raise UsageError(f"`plot={text}`: choose one of {', '.join(known)}")
    path = Path(name)
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"`plot={text}`: choose a name that ends in {', '.join(ENDINGS)}, or one of {', '.join(known)}"
        )
    return known[kind], path


def build(kinds: Iterable[ReportTable], report: Report, asked: Sequence[str] = ()) -> tuple[list[Table], list[str]]:
    """The tables of these kinds; the other half says which of them cannot be shown, and why.

    A kind that was ``asked`` for by name, and for which the report has nothing, is named on stderr.
    """

    def tables_of(kind: ReportTable) -> list[Table]:
        found = list(kind.build(report))
        if not found and kind.name in asked:
            console.note(f"`show={kind.name}`: there is nothing to show in these logs ({kind.summary})")
        return found

    return _each(kinds, tables_of)


def _each(kinds: Iterable[Any], make: Callable[[Any], list[Any]]) -> tuple[list[Any], list[str]]:
    made, problems = [], []
    for kind in kinds:
        try:
            made += make(kind)
        except SmoothctlError as error:
            problems.append(f"{kind.name}: {error}")
    return made, problems
