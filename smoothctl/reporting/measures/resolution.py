"""How finely a log printed its radii, and what that leaves undecided."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from smoothctl.reporting.frames import Floats, Frame


class Printing(StrEnum):
    """Forms in which radii are found: three significant digits, four decimals, or in full."""

    three_digits = "3 significant digits"
    four_decimals = "4 decimals"
    full = "full precision"


def printing(radius: Floats) -> Printing:
    """The coarsest form that all radii of a log have."""
    shown = radius[radius > 0]
    # Below the smallest normal numbers a scale would overflow; nobody prints such radii.
    magnitude = np.floor(np.log10(np.maximum(shown, 1e-300)))
    if _same(shown, _rounded(shown, 10.0 ** (2 - magnitude))):
        return Printing.three_digits
    return Printing.four_decimals if _same(shown, _rounded(shown, np.full_like(shown, 1e4))) else Printing.full


def _rounded(values: Floats, scale: Floats) -> Floats:
    return np.asarray(np.round(values * scale) / scale)


def _same(values: Floats, others: Floats) -> bool:
    return bool((np.abs(values - others) <= 1e-12 * values).all())


def slack(radius: Floats, form: Printing) -> Floats:
    """By how much the unrounded radius may differ from the printed one, [m]; 0 if it is printed in full."""
    if form is Printing.four_decimals:
        return np.full_like(radius, 0.5e-4)
    if form is Printing.full:
        return np.zeros_like(radius)
    magnitude = np.floor(np.log10(np.where(radius > 0, radius, 1.0)))
    return 0.5 * 10.0 ** (magnitude - 2)


def widest_slack(radius: Floats) -> Floats:
    """:func:`slack` under whichever form the radii allow that leaves more room: few rows allow several."""
    room = slack(radius, printing(radius))
    if _same(radius, _rounded(radius, np.full_like(radius, 1e4))):
        room = np.maximum(room, slack(radius, Printing.four_decimals))
    return room


def undecided(frame: Frame, radii: Sequence[float]) -> tuple[int, ...]:
    """Rows that count at r, or do not, only by the rounding of their printed radius.

    A stopping rule that proves chosen radii gives them as they were chosen.
    """
    if frame.grid is not None:
        return tuple(0 for _ in radii)
    mine = frame.proved[frame.proved > 0]
    form = printing(frame.radius)
    if form is Printing.full:
        return tuple(0 for _ in radii)
    room = slack(mine, form) * (1 - 1e-9)
    return tuple(int(np.sum((mine - room < radius) & (radius < mine + room))) for radius in radii)
