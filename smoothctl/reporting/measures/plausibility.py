"""Rows that no certification can have given: damage that a table would hide in an average.

Of n noise samples at most all vote for one class, which proves p_A >= alpha^(1/n), whatever the stopping rule; the
noise says which radius that is.
"""

from __future__ import annotations

import numpy as np

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.reporting.frames import Floats, Frame
from smoothctl.reporting.noises import noise_of, radius_of

# Phi^-1 of the largest double below 1 is 8.2: no number of noise samples proves more at scale 1.
FARTHEST = 8.3
# Of logs that do not say their scale: far above any in use, in units of pixels in [0,1].
LARGEST_SIGMA = 10.0
ROUNDING = 1e-9


def require_possible(frame: Frame) -> tuple[str, ...]:
    """Raise SmoothctlError, naming the line, for a radius that cannot be; return what could not be checked."""
    try:
        noise_of(frame)
    except UsageError:
        return (f"its noise {frame.settings['noise']!r} is not installed here, so its radii could not be checked",)
    stated = "sigma" not in frame.guessed
    if stated and frame.settings.get("noise") is not None:
        _require_proved(frame)
    elif (at := beyond_sigma(frame) if stated and frame.sigma else beyond_any(frame)) is not None:
        scale = f"sigma {frame.sigma:g}" if stated and frame.sigma else f"a sigma up to {LARGEST_SIGMA:g}"
        raise SmoothctlError(
            f"{_line(frame, at)}: radius {frame.radius[at]:g} is beyond what any number of noise samples proves at "
            f"{scale}, in units of pixels in [0,1]; is a decimal point lost, or was it in units of 1/255?"
        )
    return ()


def beyond_sigma(frame: Frame) -> int | None:
    """The first row with a radius that Gaussian noise of the log's sigma cannot prove, or None."""
    return None if frame.sigma is None or frame.norm != "l2" else _first(frame.radius > FARTHEST * frame.sigma)


def beyond_any(frame: Frame) -> int | None:
    """The first row with a radius that no sigma in use proves, or None."""
    return _first(frame.radius > FARTHEST * LARGEST_SIGMA)


def _require_proved(frame: Frame) -> None:
    """Hold the radii against what n and alpha can prove, and against the bounds on p_A beside them."""
    radius = radius_of(frame)
    if radius is None:
        return
    n = np.where(frame.n > 0, frame.n, frame.settings.get("n") or 0)
    if frame.alpha and (known := n > 0).any():
        most = np.zeros(len(frame))
        most[known] = radius(frame.alpha ** (1.0 / n[known]))
        if (at := _first(known & _above(frame.radius, most))) is not None:
            raise SmoothctlError(
                f"{_line(frame, at)}: radius {frame.radius[at]:g} cannot be: {n[at]:,} noise samples prove at most "
                f"{most[at]:.4g} at sigma {frame.sigma:g} and alpha {frame.alpha:g}"
            )
    if len(frame.p_lower) and frame.settings.get("bound", "binary") == "binary":
        known = ~np.isnan(frame.p_lower) & ~frame.failed & (frame.radius > 0)
        most = np.where(known, radius(np.nan_to_num(frame.p_lower)), np.inf)
        if (at := _first(_above(frame.radius, most))) is not None:
            raise SmoothctlError(
                f"{_line(frame, at)}: radius {frame.radius[at]:g} cannot be: its p_lower {frame.p_lower[at]:g} proves "
                f"{most[at]:.4g} at sigma {frame.sigma:g}"
            )


def _above(radius: Floats, most: Floats) -> np.ndarray:
    return np.asarray(radius > most * (1 + ROUNDING) + 1e-12)


def _first(found: np.ndarray) -> int | None:
    places = np.flatnonzero(found)
    return int(places[0]) if len(places) else None


def _line(frame: Frame, at: int) -> str:
    return f"{frame.path}, line {frame.line[at]}" if len(frame.line) else f"{frame.path}, idx {frame.idx[at]}"
