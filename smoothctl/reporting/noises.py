"""Which radius the noise of a log proves, asked of the noise itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smoothctl.base.errors import UsageError
from smoothctl.hooks.noises import NORMS, Noise, conversion, stretch
from smoothctl.hooks.registry import registry
from smoothctl.reporting.frames import Floats, Frame


def noise_of(frame: Frame) -> Noise | None:
    """The noise that a log names; None if it names none, as others' logs do.

    Raises UsageError if no plugin here has that noise.
    """
    name = frame.settings.get("noise")
    if name is None:
        return None
    found: Noise = registry("noise").find("noise", str(name)).value
    return found


def radius_of(frame: Frame) -> Callable[[Floats], Floats] | None:
    """What bounds on p_A prove with the noise, sigma and norm of a log; None where one is not known."""
    sigma = frame.sigma
    try:
        noise = noise_of(frame)
    except UsageError:
        return None
    if noise is None or sigma is None:
        return None
    shape = frame.input_shape
    if noise.for_shape is not None and shape is None:
        return None
    noise = noise.at(shape or ())
    divisor = 1.0
    if frame.norm != noise.norm:
        values = frame.values
        if values is None or not {frame.norm, noise.norm} <= set(NORMS):
            return None
        divisor = stretch(noise.norm, frame.norm, values)

    def radius(p: Floats) -> Floats:
        distinct, back = np.unique(p, return_inverse=True)
        radii = [noise.radius(value, sigma) / divisor if value >= 0.5 else 0.0 for value in distinct.tolist()]
        return np.array(radii)[back]

    return radius


def converted(frame: Frame) -> str:
    """Say which radii a log converted to another norm than its noise's; empty if none."""
    try:
        noise = noise_of(frame)
        values = frame.values
        return conversion(noise.norm, frame.norm, values) if noise and values else ""
    except UsageError:
        return ""
