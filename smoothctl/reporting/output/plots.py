"""Plots of a report, with matplotlib; no display is needed. Each kind is one object, in the list at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from smoothctl.base.console import printable
from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.reports import ReportPlot
from smoothctl.reporting.assemble import Report
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import metrics, whatif
from smoothctl.reporting.measures.attacks import successes
from smoothctl.reporting.output.attacked import attacked_logs
from smoothctl.reporting.output.drawing import (
    GREY,
    SIZE,
    accuracy_axes,
    add_legend,
    draw_curve,
    few,
    in_percent,
    legend_of_panels,
    make_axes,
    panels_by_norm,
    say_left_out,
    style_of,
)

SAMPLE_SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
CONFIDENCES = (0.0001, 0.001, 0.01, 0.05)


def curve(report: Report) -> Figure:
    """Certified accuracy over the radius, a curve for each log; what-ifs too."""
    frames = few(_certified(report))
    figure, panels = panels_by_norm(frames)
    for axes, members in panels:
        for place, frame in members:
            draw_curve(axes, frame.proved, place)
        axes.set_xlim(left=0)
    legend_of_panels(figure, panels)
    say_left_out(figure, len(report.frames))
    return figure


def _certified(report: Report) -> Sequence[Frame]:
    if not report.frames:
        raise SmoothctlError("there is no certification log to plot")
    return report.frames


def envelope(report: Report) -> Figure:
    """The best of several sigmas at each radius, over the thin curves of each."""
    _certified(report)
    frames = few(report.recorded)
    if len(frames) < 2:
        raise SmoothctlError("an envelope needs several certification logs, such as one for each sigma")
    figure, panels = panels_by_norm(frames)
    for axes, members in panels:
        for place, frame in members:
            draw_curve(axes, frame.proved, place, linewidth=1.4)
        same = [frame for _, frame in members]
        grid = np.unique(np.concatenate([[0.0], *(frame.proved[frame.proved >= 0] for frame in same)]))
        best = np.max([metrics.certified_accuracy(frame, grid.tolist()) for frame in same], axis=0)
        # The height just below a radius holds back to the radius before it.
        axes.plot(grid, best, drawstyle="steps-pre", color=GREY, linewidth=6, alpha=0.35, zorder=1)
        axes.set_xlim(left=0)
    legend_of_panels(figure, panels, "best of all")
    say_left_out(figure, len(report.recorded))
    return figure


def ecdf(report: Report) -> Figure:
    """The distribution over images of the share of votes for the true label."""
    figure, axes = make_axes(
        "share of votes for the true label (estimate of its p_A)", "images with at most this share"
    )
    _certified(report)
    known = [(frame, metrics.label_probabilities(frame)) for frame in report.recorded]
    drawn = [(frame, shares) for frame, shares in known if shares is not None]
    if not drawn:
        raise SmoothctlError(
            "the distribution of p_A of the true label needs votes and n, which none of the logs keeps"
        )
    for place, (_, shares) in enumerate(few(drawn)):
        axes.ecdf(shares, **style_of(place))
    names = [frame.title for frame, _ in few(drawn)]
    add_legend(axes, names)
    say_left_out(figure, len(drawn))
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
    figure, axes = accuracy_axes(frame.norm)
    for place, (_, change) in enumerate(variants):
        draw_curve(axes, change(frame).proved, place)
    axes.set_xlim(left=0)
    axes.set_title(printable(_title(report, frame)), fontsize=10.5, loc="left", parse_math=False)
    add_legend(axes, [label for label, _ in variants])
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
            **style_of(place), **mark,
        )  # fmt: skip
        lower.plot(epochs, [_number(line.get("loss")) for line in history], **style_of(place), **mark)
    upper.set_ylabel("held-out accuracy", fontsize=10.5)
    upper.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    lower.set_ylabel("training loss", fontsize=10.5)
    lower.set_xlabel("epoch", fontsize=11)
    lower.xaxis.get_major_locator().set_params(integer=True)
    for axes in (upper, lower):
        axes.grid(alpha=0.35, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    add_legend(upper, [name for name, _ in runs])
    say_left_out(figure, len(report.runs))
    return figure


def attacks(report: Report) -> Figure:
    """The fraction of attacks that changed the class, over the multiple of the certified radius."""
    attacked = few(attacked_logs(report))
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
    say_left_out(figure, len(attacked_logs(report)))
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
        "attacks", attacks, "success of attacks over multiples of the certified radius",
        "Attacks within and beyond the certified radius",
        "Share of attacks that change the class, over the norm of the attack in multiples of the certified radius.",
    ),
    ReportPlot(
        "learning", learning, "accuracy and loss of training runs by epoch", "Training",
        "Accuracy on the test split above and training loss below, by epoch.",
    ),
)  # fmt: skip
