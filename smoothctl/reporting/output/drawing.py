"""How a plot looks: axes, curves, the names of series, and the file that it is written to.

Series differ in colour (Okabe and Ito's, which people with colour blindness can tell apart), in line
style, and in the name at their end, so that they also do in grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from smoothctl.base.console import printable
from smoothctl.reporting.frames import Floats, Frame

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C510A")


STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (6, 2, 1.5, 2)), (0, (1.5, 1.5)), (0, (8, 2, 1.5, 2, 1.5, 2)))


GREY = "#6E6E6E"


SIZE = (6.4, 4.0)


MANY_SERIES = 12


LEGEND_WIDTH = 62


Series = TypeVar("Series")


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a .png, .svg or .pdf file, without a date, so that the same report gives the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = path.suffix.lower()
    undated = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    figure.savefig(path, dpi=200, metadata=undated[ending])


def make_axes(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    dress(axes, xlabel, ylabel)
    return figure, axes


def dress(axes: Axes, xlabel: str, ylabel: str) -> None:
    axes.set_xlabel(xlabel, fontsize=11)
    axes.set_ylabel(ylabel, fontsize=11)
    axes.tick_params(labelsize=10)
    axes.grid(alpha=0.35, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def style_of(place: int) -> dict[str, Any]:
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": STYLES[place % len(STYLES)],
        "linewidth": 2.0,
        "solid_capstyle": "butt",
    }


def add_legend(axes: Axes, names: Sequence[str]) -> None:
    """Name the series above the plot, where they cover none of it; as many abreast as fit.

    Names come from files: they are set as plain text, since matplotlib would read ``$`` as mathematics and leave out
    what begins with an underscore.
    """
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    longest = max(map(len, names))
    drawn = figure.legend(
        axes.get_lines()[: len(names)], [f"series {place}".ljust(len(name)) for place, name in enumerate(names)],
        loc="outside upper left", ncols=max(1, min(4, LEGEND_WIDTH // (longest + 7))),
        fontsize=9.5 if longest < 60 else 8, frameon=False, handlelength=3.0, columnspacing=1.6, borderaxespad=0.2,
    )  # fmt: skip
    for text, name in zip(drawn.get_texts(), names, strict=True):
        text.set_text(printable(name))
        text.set_parse_math(False)


def as_steps(proved: Floats) -> tuple[Floats, Floats]:
    """Certified accuracy as a step function: it holds up to and including each radius, and then falls."""
    radii, counts = np.unique(proved[proved >= 0], return_counts=True)
    left = (counts[::-1].cumsum()[::-1]) / len(proved)
    return np.concatenate([[0.0], radii]), np.concatenate([left, [0.0]]) if len(radii) else np.zeros(1)


def accuracy_axes(norm: str) -> tuple[Figure, Axes]:
    figure, axes = make_axes(f"{norm.upper()} radius (pixels in [0,1])", "certified accuracy")
    in_percent(axes)
    return figure, axes


def in_percent(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylim(0, 1)


def draw_curve(axes: Axes, proved: Floats, place: int, **style: Any) -> None:
    radii, accuracy = as_steps(proved)
    axes.plot(radii, accuracy, drawstyle="steps-post", **{**style_of(place), **style})


def few(series: Sequence[Series]) -> Sequence[Series]:
    """As many as can be told apart in one plot; what is left out, the plot says."""
    return series[:MANY_SERIES]


def say_left_out(figure: Figure, count: int) -> None:
    if count > MANY_SERIES:
        figure.text(0.99, 0.01, f"the first {MANY_SERIES} of {count}", ha="right", fontsize=8, color=GREY)


def panels_by_norm(frames: Sequence[Frame]) -> tuple[Figure, list[tuple[Axes, list[tuple[int, Frame]]]]]:
    """Axes for each norm, since radii in several must not share one; with the frames of each and their places."""
    by_norm: dict[str, list[tuple[int, Frame]]] = {}
    for place, frame in enumerate(frames):
        by_norm.setdefault(frame.norm, []).append((place, frame))
    figure, first = accuracy_axes(next(iter(by_norm)))
    panels = [first]
    if len(by_norm) > 1:
        figure.clear()
        figure.set_size_inches(SIZE[0], SIZE[1] * (0.4 + 0.6 * len(by_norm)))
        panels = list(figure.subplots(len(by_norm), 1))
        for axes, norm in zip(panels, by_norm, strict=True):
            dress(axes, f"{norm.upper()} radius (pixels in [0,1])", "certified accuracy")
            in_percent(axes)
    return figure, list(zip(panels, by_norm.values(), strict=True))


def legend_of_panels(figure: Figure, panels: Sequence[tuple[Axes, list[tuple[int, Frame]]]], *more: str) -> None:
    """One legend for a single panel; for several, each names its own series inside."""
    if len(panels) == 1:
        axes, members = panels[0]
        add_legend(axes, [*(frame.title for _, frame in members), *more])
        return
    for axes, members in panels:
        drawn = axes.legend(axes.get_lines()[: len(members)], ["x"] * len(members), fontsize=8.5, frameon=False)
        for text, (_, frame) in zip(drawn.get_texts(), members, strict=True):
            text.set_text(printable(frame.title))
            text.set_parse_math(False)
