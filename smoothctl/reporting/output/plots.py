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

from smoothctl.base.errors import SmoothctlError
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


def draw(kind: str, report: Report) -> Figure:
    """Draw one kind of plot; raises SmoothctlError if the logs lack what it needs."""
    if not report.frames and kind != "learning":
        raise SmoothctlError("there is no certification log to plot")
    return PLOTS[kind](report)


def _axes(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(xlabel, fontsize=11)
    axes.set_ylabel(ylabel, fontsize=11)
    axes.tick_params(labelsize=10)
    axes.grid(alpha=0.35, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _style(place: int) -> dict[str, Any]:
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": STYLES[place % len(STYLES)],
        "linewidth": 2.0,
        "solid_capstyle": "butt",
    }


def _legend(axes: Axes) -> None:
    """Name the series above the plot, where they cover none of it; as many abreast as fit."""
    handles, labels = axes.get_legend_handles_labels()
    longest = max(map(len, labels))
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.legend(
        handles, labels, loc="outside upper left", ncols=max(1, min(4, LEGEND_WIDTH // (longest + 7))),
        fontsize=9.5 if longest < 60 else 8, frameon=False, handlelength=3.0, columnspacing=1.6, borderaxespad=0.2,
    )  # fmt: skip


def _steps(proved: Floats) -> tuple[Floats, Floats]:
    """Certified accuracy as a step function: it holds up to and including each radius, and then falls."""
    radii, counts = np.unique(proved[proved >= 0], return_counts=True)
    left = (counts[::-1].cumsum()[::-1]) / len(proved)
    return np.concatenate([[0.0], radii]), np.concatenate([left, [0.0]]) if len(radii) else np.zeros(1)


def _accuracy_axes(report: Report) -> tuple[Figure, Axes]:
    norm = report.recorded[0].norm.upper() if report.recorded else "L2"
    figure, axes = _axes(f"{norm} radius (pixels in [0,1])", "certified accuracy")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylim(0, 1)
    return figure, axes


def _draw_curve(axes: Axes, proved: Floats, label: str, place: int, **style: Any) -> None:
    radii, accuracy = _steps(proved)
    axes.plot(radii, accuracy, drawstyle="steps-post", label=label, **{**_style(place), **style})


def _few(series: Sequence[Series]) -> Sequence[Series]:
    if len(series) > MANY_SERIES:
        raise SmoothctlError(f"a plot of {len(series)} runs cannot be read; name at most {MANY_SERIES} of them")
    return series


def curve(report: Report) -> Figure:
    """Certified accuracy over the radius, a curve for each log; what-ifs too."""
    figure, axes = _accuracy_axes(report)
    frames = _few(report.frames)
    for place, frame in enumerate(frames):
        _draw_curve(axes, frame.proved, frame.title, place)
    axes.set_xlim(left=0)
    _legend(axes)
    return figure


def envelope(report: Report) -> Figure:
    """The best of several sigmas at each radius, over the thin curves of each."""
    figure, axes = _accuracy_axes(report)
    frames = _few(report.recorded)
    if len(frames) < 2:
        raise SmoothctlError("an envelope needs several certification logs, such as one for each sigma")
    grid = np.unique(np.concatenate([[0.0], *(frame.proved[frame.proved >= 0] for frame in frames)]))
    best = np.max([metrics.certified_accuracy(frame, grid.tolist()) for frame in frames], axis=0)
    for place, frame in enumerate(frames):
        _draw_curve(axes, frame.proved, frame.title, place, linewidth=1.4)
    # The height just below a radius holds back to the radius before it.
    axes.plot(grid, best, drawstyle="steps-pre", color=GREY, linewidth=6, alpha=0.35, label="best of all", zorder=1)
    axes.set_xlim(left=0)
    _legend(axes)
    return figure


def ecdf(report: Report) -> Figure:
    """The distribution over images of the share of votes for the true label."""
    figure, axes = _axes("share of votes for the true label (estimate of its p_A)", "images with at most this share")
    known = [(frame, metrics.label_probabilities(frame)) for frame in _few(report.recorded)]
    drawn = [(frame, shares) for frame, shares in known if shares is not None]
    if not drawn:
        raise SmoothctlError(
            "the distribution of p_A of the true label needs votes and n, which none of the logs keeps"
        )
    for place, (frame, shares) in enumerate(drawn):
        axes.ecdf(shares, label=frame.title, **_style(place))
    axes.axvline(0.5, color=GREY, linewidth=1)
    axes.annotate("1/2", (0.5, 0.97), xytext=(4, 0), textcoords="offset points", color=GREY, fontsize=9, va="top")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    _legend(axes)
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
    figure, axes = _accuracy_axes(report)
    frame = _first(report, what)
    for place, (label, change) in enumerate(variants):
        _draw_curve(axes, change(frame).proved, label, place)
    axes.set_xlim(left=0)
    axes.set_title(_title(report, frame), fontsize=10.5, loc="left")
    _legend(axes)
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
    runs = [(str(run.path), run.read_history()) for run in _few(report.runs)]
    if not runs:
        raise SmoothctlError("no training history lies beside the logs; name run directories of smoothctl")
    figure = Figure(figsize=SIZE, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for place, (name, history) in enumerate(runs):
        epochs = [line["epoch"] + 1 for line in history]
        mark = {"marker": "o", "markersize": 3.5} if len(epochs) <= 30 else {}
        upper.plot(
            epochs, [_number(line.get("heldout_accuracy")) for line in history],
            label=name, **_style(place), **mark,
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
    _legend(upper)
    return figure


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


PLOTS: dict[str, Callable[[Report], Figure]] = {
    "curve": curve, "envelope": envelope, "ecdf": ecdf, "samples": samples,
    "alpha": alpha, "bounds": bounds, "learning": learning,
}  # fmt: skip
