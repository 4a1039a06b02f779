"""Plots of a report, with matplotlib; no display is needed.

Series differ in colour (Okabe and Ito's, which people with colour blindness can tell apart), in line
style, and in the name at their end, so that they also do in grey.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from smoothctl.base.console import printable
from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.reports import ReportPlot
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.frames import Floats, Frame
from smoothctl.reporting.measures import metrics, whatif

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C510A")
STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (6, 2, 1.5, 2)), (0, (1.5, 1.5)), (0, (8, 2, 1.5, 2, 1.5, 2)))
GREY = "#6E6E6E"
SIZE = (6.4, 4.0)
MANY_SERIES = 12
LEGEND_WIDTH = 62
SAMPLE_SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
Series = TypeVar("Series")
CONFIDENCES = (0.0001, 0.001, 0.01, 0.05)


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a .png, .svg or .pdf file, without a date, so that the same report gives the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = path.suffix.lower()
    undated = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    figure.savefig(path, dpi=200, metadata=undated[ending])


def _axes(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    _dress(axes, xlabel, ylabel)
    return figure, axes


def _dress(axes: Axes, xlabel: str, ylabel: str) -> None:
    axes.set_xlabel(xlabel, fontsize=11)
    axes.set_ylabel(ylabel, fontsize=11)
    axes.tick_params(labelsize=10)
    axes.grid(alpha=0.35, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _style(place: int) -> dict[str, Any]:
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": STYLES[place % len(STYLES)],
        "linewidth": 2.0,
        "solid_capstyle": "butt",
    }


def _legend(axes: Axes, names: Sequence[str]) -> None:
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


def _steps(proved: Floats) -> tuple[Floats, Floats]:
    """Certified accuracy as a step function: it holds up to and including each radius, and then falls."""
    radii, counts = np.unique(proved[proved >= 0], return_counts=True)
    left = (counts[::-1].cumsum()[::-1]) / len(proved)
    return np.concatenate([[0.0], radii]), np.concatenate([left, [0.0]]) if len(radii) else np.zeros(1)


def _accuracy_axes(norm: str) -> tuple[Figure, Axes]:
    figure, axes = _axes(f"{norm.upper()} radius (pixels in [0,1])", "certified accuracy")
    _in_percent(axes)
    return figure, axes


def _in_percent(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylim(0, 1)


def _draw_curve(axes: Axes, proved: Floats, place: int, **style: Any) -> None:
    radii, accuracy = _steps(proved)
    axes.plot(radii, accuracy, drawstyle="steps-post", **{**_style(place), **style})


def few(series: Sequence[Series]) -> Sequence[Series]:
    """As many as can be told apart in one plot; what is left out, the plot says."""
    return series[:MANY_SERIES]


def _say_left_out(figure: Figure, count: int) -> None:
    if count > MANY_SERIES:
        figure.text(0.99, 0.01, f"the first {MANY_SERIES} of {count}", ha="right", fontsize=8, color=GREY)


def _panels(frames: Sequence[Frame]) -> tuple[Figure, list[tuple[Axes, list[tuple[int, Frame]]]]]:
    """Axes for each norm, since radii in several must not share one; with the frames of each and their places."""
    by_norm: dict[str, list[tuple[int, Frame]]] = {}
    for place, frame in enumerate(frames):
        by_norm.setdefault(frame.norm, []).append((place, frame))
    figure, first = _accuracy_axes(next(iter(by_norm)))
    panels = [first]
    if len(by_norm) > 1:
        figure.clear()
        figure.set_size_inches(SIZE[0], SIZE[1] * (0.4 + 0.6 * len(by_norm)))
        panels = list(figure.subplots(len(by_norm), 1))
        for axes, norm in zip(panels, by_norm, strict=True):
            _dress(axes, f"{norm.upper()} radius (pixels in [0,1])", "certified accuracy")
            _in_percent(axes)
    return figure, list(zip(panels, by_norm.values(), strict=True))


def curve(report: Report) -> Figure:
    """Certified accuracy over the radius, a curve for each log; what-ifs too."""
    frames = few(_certified(report))
    figure, panels = _panels(frames)
    for axes, members in panels:
        for place, frame in members:
            _draw_curve(axes, frame.proved, place)
        axes.set_xlim(left=0)
    _legend_of(figure, panels)
    _say_left_out(figure, len(report.frames))
    return figure


def _certified(report: Report) -> Sequence[Frame]:
    if not report.frames:
        raise SmoothctlError("there is no certification log to plot")
    return report.frames


def _legend_of(figure: Figure, panels: Sequence[tuple[Axes, list[tuple[int, Frame]]]], *more: str) -> None:
    """One legend for a single panel; for several, each names its own series inside."""
    if len(panels) == 1:
        axes, members = panels[0]
        _legend(axes, [*(frame.title for _, frame in members), *more])
        return
    for axes, members in panels:
        drawn = axes.legend(axes.get_lines()[: len(members)], ["x"] * len(members), fontsize=8.5, frameon=False)
        for text, (_, frame) in zip(drawn.get_texts(), members, strict=True):
            text.set_text(printable(frame.title))
            text.set_parse_math(False)


def envelope(report: Report) -> Figure:
    """The best of several sigmas at each radius, over the thin curves of each."""
    _certified(report)
    frames = few(report.recorded)
    if len(frames) < 2:
        raise SmoothctlError("an envelope needs several certification logs, such as one for each sigma")
    figure, panels = _panels(frames)
    for axes, members in panels:
        for place, frame in members:
            _draw_curve(axes, frame.proved, place, linewidth=1.4)
        same = [frame for _, frame in members]
        grid = np.unique(np.concatenate([[0.0], *(frame.proved[frame.proved >= 0] for frame in same)]))
        best = np.max([metrics.certified_accuracy(frame, grid.tolist()) for frame in same], axis=0)
        # The height just below a radius holds back to the radius before it.
        axes.plot(grid, best, drawstyle="steps-pre", color=GREY, linewidth=6, alpha=0.35, zorder=1)
        axes.set_xlim(left=0)
    _legend_of(figure, panels, "best of all")
    _say_left_out(figure, len(report.recorded))
    return figure


def ecdf(report: Report) -> Figure:
    """The distribution over images of the share of votes for the true label."""
    figure, axes = _axes("share of votes for the true label (estimate of its p_A)", "images with at most this share")
    _certified(report)
    known = [(frame, metrics.label_probabilities(frame)) for frame in report.recorded]
    drawn = [(frame, shares) for frame, shares in known if shares is not None]
    if not drawn:
        raise SmoothctlError(
            "the distribution of p_A of the true label needs votes and n, which none of the logs keeps"
        )
    for place, (_, shares) in enumerate(few(drawn)):
        axes.ecdf(shares, **_style(place))
    names = [frame.title for frame, _ in few(drawn)]
    _legend(axes, names)
    _say_left_out(figure, len(drawn))
    axes.axvline(0.5, color=GREY, linewidth=1)
    axes.annotate("1/2", (0.5, 0.97), xytext=(4, 0), textcoords="offset points", color=GREY, fontsize=9, va="top")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    return figure


def _first(report: Report, what: str) -> Frame:
    """The first log whose votes are known, for a plot of one run under many settings."""
    if not report.recorded:
        raise SmoothctlError(f"the plot of {what} needs a certification log")
    reasons = []
    for frame in report.recorded:
        try:
            whatif.lower_bounds(frame)
        except SmoothctlError as error:
            reasons.append(error)
        else:
            return frame
    raise reasons[0]


def _variants(report: Report, what: str, variants: Sequence[tuple[str, Callable[[Frame], Frame]]]) -> Figure:
    frame = _first(report, what)
    figure, axes = _accuracy_axes(frame.norm)
    for place, (_, change) in enumerate(variants):
        _draw_curve(axes, change(frame).proved, place)
    axes.set_xlim(left=0)
    axes.set_title(printable(_title(report, frame)), fontsize=10.5, loc="left", parse_math=False)
    _legend(axes, [label for label, _ in variants])
    return figure


def _title(report: Report, frame: Frame) -> str:
    others = len(report.recorded) - 1
    return f"{frame.name}{f' (one of {others + 1} logs)' if others else ''}"


def samples(report: Report) -> Figure:
    """One log at smaller n (thinned) and larger n (projected), as in figure 8 (middle) of Cohen et al. 2019."""
    frame = _first(report, "samples")
    _, sizes = whatif.counts(frame)
    now = int(sizes.max())

    def at(n: int) -> Callable[[Frame], Frame]:
        return lambda each: each if n == now else whatif.apply(each, "n", str(n))

    smaller, larger = [n for n in SAMPLE_SIZES if n < now], [n for n in SAMPLE_SIZES if n > now]
    chosen = [*smaller[-3:], now, *larger[:1]]
    kinds = {True: " (projected)", False: ""}
    return _variants(report, "samples", [(f"n={n:,}{kinds[n > now]}", at(n)) for n in chosen])


def alpha(report: Report) -> Figure:
    """One log at several alpha, as in figure 8 (right) of Cohen et al. 2019."""

    def at(value: float) -> Callable[[Frame], Frame]:
        return lambda frame: whatif.at_alpha(frame, value)

    own = _first(report, "alpha").alpha
    values = sorted({*CONFIDENCES, *([own] if own else [])})
    return _variants(report, "alpha", [(f"alpha={value:g}", at(value)) for value in values])


def bounds(report: Report) -> Figure:
    """One log under three guarantees, as in figure 8 (left) of Cohen et al. 2019."""
    names = (("li2018", "Li et al. 2018"), ("lecuyer2019", "Lecuyer et al. 2019"))

    def under(name: str) -> Callable[[Frame], Frame]:
        return lambda frame: whatif.with_bound(frame, name)

    own: tuple[str, Callable[[Frame], Frame]] = ("Cohen et al. 2019", lambda frame: frame)
    return _variants(report, "bounds", [own, *((label, under(name)) for name, label in names)])


def learning(report: Report) -> Figure:
    """Accuracy on held-out images and loss by epoch, of training runs."""
    runs = [(str(run.path), run.read_history()) for run in few(report.runs)]
    if not runs:
        raise SmoothctlError("no training history lies beside the logs; name run directories of smoothctl")
    figure = Figure(figsize=SIZE, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for place, (_, history) in enumerate(runs):
        epochs = [line["epoch"] + 1 for line in history]
        mark = {"marker": "o", "markersize": 3.5} if len(epochs) <= 30 else {}
        upper.plot(
            epochs, [_number(line.get("heldout_accuracy")) for line in history],
            **_style(place), **mark,
        )  # fmt: skip
        lower.plot(epochs, [_number(line.get("loss")) for line in history], **_style(place), **mark)
    upper.set_ylabel("held-out accuracy", fontsize=10.5)
    upper.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    lower.set_ylabel("training loss", fontsize=10.5)
    lower.set_xlabel("epoch", fontsize=11)
    lower.xaxis.get_major_locator().set_params(integer=True)
    for axes in (upper, lower):
        axes.grid(alpha=0.35, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    _legend(upper, [name for name, _ in runs])
    _say_left_out(figure, len(report.runs))
    return figure


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


PLOTS = (
    ReportPlot(
        "curve", curve, "certified accuracy over the radius", "Certified accuracy over the radius",
        "Step curves that fall with the radius, one for each run. The figures are in the table of results.",
    ),
    ReportPlot(
        "envelope", envelope, "the best of several logs per radius", "Best of several runs at each radius",
        "The same curves with the highest of them at each radius marked in grey.",
    ),
    ReportPlot(
        "ecdf", ecdf, "distribution over images of the share of votes for the true label",
        "How sure the base classifier is of the true label",
        "Share of images, over the share of votes that the true label gets; lower curves are surer.",
    ),
    ReportPlot(
        "samples", samples, "one log at other n", "With fewer or more noise samples",
        "Step curves of one run, thinned to smaller n and projected to a larger one.",
    ),
    ReportPlot(
        "alpha", alpha, "one log at other alpha", "With another alpha",
        "Step curves of one run for several probabilities of error.",
    ),
    ReportPlot(
        "bounds", bounds, "one log under older guarantees", "Under older guarantees",
        "Step curves of one run under the guarantees of Cohen, Li and Lecuyer.",
    ),
    ReportPlot(
        "learning", learning, "accuracy and loss of training runs by epoch", "Training",
        "Accuracy on the test split above and training loss below, by epoch.",
    ),
)  # fmt: skip
