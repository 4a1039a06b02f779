"""Curves of certified accuracy over the radius, to a file; no display is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from smoothctl.errors import UsageError
from smoothctl.records import Log
from smoothctl.report.metrics import certified_accuracy

ENDINGS = (".png", ".svg", ".pdf")
# Okabe and Ito's colours, which people with colour blindness can tell apart; the styles serve in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", "-.", ":")


def check_ending(path: Path) -> None:
    """Raise UsageError for a file that cannot be plotted to."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"--plot {path}: choose a name that ends in {', '.join(ENDINGS)}")


def plot_curves(logs: Sequence[Log], names: Sequence[str], path: Path) -> None:
    """Draw one curve per certification log: certified accuracy in percent over the radius."""
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for place, (log, name) in enumerate(zip(logs, names, strict=True)):
        steps = np.unique([0.0, *(row.radius for row in log.rows if row.correct and row.radius is not None)])
        # Past the largest radius nothing is certified.
        radii = np.append(steps, np.nextafter(steps[-1], np.inf))
        accuracy = 100 * np.array(certified_accuracy(log.rows, radii.tolist()))
        axes.step(
            radii, accuracy, where="pre", label=name, linewidth=1.8,
            color=COLOURS[place % len(COLOURS)], linestyle=STYLES[place % len(STYLES)],
        )  # fmt: skip
    axes.set_xlabel("radius (units of pixels in [0,1])")
    axes.set_ylabel("certified accuracy (%)")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
