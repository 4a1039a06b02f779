"""Shares, radii and their columns, as tables write them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal

from smoothctl.reporting.output.layout import Cell, Column, figures

ACR = figures("ACR")


def radius_name(radius: float) -> str:
    """How a radius heads a column: ``r=0.25``."""
    return f"r={radius:.4g}" if round(radius * 100) != radius * 100 else f"r={radius:.2f}"


def radius_columns(radii: Sequence[float], norm: str = "l2") -> list[Column]:
    """A column for each radius: where a terminal is narrow, whole radii stay the longest."""
    group = rf"Certified accuracy (\%) at $\ell_{{{escape_norm(norm)}}}$ radius"
    ranks = {radius: 2 if radius == round(radius) else 3 if 2 * radius == round(2 * radius) else 4 for radius in radii}
    return [figures(radius_name(radius), ranks[radius], f"{radius:.2f}", group) for radius in radii]


def escape_norm(norm: str) -> str:
    """The index of a norm in LaTeX: 2 of l2."""
    return {"linf": r"\infty"}.get(norm.lower(), norm.lower().removeprefix("l"))


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
