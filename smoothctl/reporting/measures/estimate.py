"""What a large n would find on all images, estimated from a small n on all of them and a large n on some.

The log of all images serves as a control variate (auxiliary variable) for the other; the estimate is one of survey
sampling (Cochran, Sampling Techniques, 1977): over images, given the noise. It takes the images of the smaller log to
be a sample of all that has nothing to do with how hard they are: drawn at random, or every K-th.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from smoothctl.base.errors import SmoothctlError
from smoothctl.reporting.frames import Bools, Floats, Frame
from smoothctl.reporting.measures.metrics import CONFIDENCE, average_certified_radius, evaluations

LEAST = 30
"""A log of fewer images is not estimated from: their residuals say too little."""
LEAST_IN_STRATUM = 10


@dataclass(frozen=True)
class Estimated:
    """A mean over all images: its estimate, with a 95 % interval over the choice of the smaller log's images."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """What ``full`` would find on all ``images`` of ``cheap``, of which it holds ``measured``.

    ``saving``: how many times fewer noise samples the two logs took than ``full`` on all images; None where the logs
    do not say. ``certified`` by radius; ``acr`` None where a log has none.
    """

    full: str
    cheap: str
    images: int
    measured: int
    saving: float | None
    certified: tuple[Estimated, ...]
    acr: Estimated | None


def estimates(frames: Sequence[Frame], radii: Sequence[float]) -> list[Estimate]:
    """An estimate for each log of fewer images and more noise samples than another of the same model and noise.

    Raises SmoothctlError for logs whose labels differ.
    """
    groups: dict[tuple[object, ...], list[Frame]] = {}
    for frame in frames:
        groups.setdefault((frame.group[0], frame.norm, frame.sigma, frame.settings.get("model")), []).append(frame)
    found = []
    for group in groups.values():
        cheap = max(group, key=len)
        found += [estimate(cheap, full, radii) for full in group if _refines(full, cheap)]
    return found


def _refines(full: Frame, cheap: Frame) -> bool:
    sizes = [frame.settings.get("n") or int(frame.n.max(initial=0)) for frame in (full, cheap)]
    return LEAST <= len(full) < len(cheap) and sizes[0] > sizes[1] and bool(np.isin(full.idx, cheap.idx).all())


def estimate(cheap: Frame, full: Frame, radii: Sequence[float]) -> Estimate:
    """What ``full`` would find on all images of ``cheap``, which has them all."""
    order = np.argsort(cheap.idx)
    places = order[np.searchsorted(cheap.idx, full.idx, sorter=order)]
    if (clash := cheap.label[places] != full.label).any():
        raise SmoothctlError(f"idx {full.idx[clash][0]} has one label in {cheap.path} and another in {full.path}")
    certified = tuple(post_stratified(full.proved >= radius, cheap.proved >= radius, places) for radius in radii)
    acr = None
    if average_certified_radius(cheap) is not None and average_certified_radius(full) is not None:
        radius = np.maximum(cheap.proved, 0.0)
        # At the largest radius that a small n proves, images differ in ways that only the large n tells.
        controls = np.stack([radius, radius >= radius.max() - 1e-9], axis=1).astype(float)
        acr = regression(np.maximum(full.proved, 0.0), controls, places)
    return Estimate(full.name, cheap.name, len(cheap), len(full), _saving(cheap, full), certified, acr)


def regression(values: Floats, controls: Floats, places: NDArray[np.intp]) -> Estimated:
    """The mean of a variable over all N, of which ``values`` [m] are known at ``places``, from controls [N,q].

    The linear regression estimator, its variance from the residuals with the correction for a finite population
    (Cochran 1977, sections 7.1 to 7.4), and Student's t.
    """
    design = np.column_stack([np.ones(len(controls)), controls])
    coefficients, _, rank, _ = np.linalg.lstsq(design[places], values, rcond=None)
    residuals = values - design[places] @ coefficients
    free = len(values) - int(rank)
    variance = float(residuals @ residuals) / free / len(values) * (1 - len(values) / len(controls))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, free)) * math.sqrt(variance)
    value = float((design @ coefficients).mean())
    return Estimated(value, value - half, value + half)


def post_stratified(decided: Bools, control: Bools, places: NDArray[np.intp]) -> Estimated:
    """The share of all N for which something holds, of which ``decided`` [m] are known at ``places``, by strata.

    The strata are where the control [N] holds and where not (Cochran 1977, section 5A.9); Wilson's intervals of the
    strata are combined by MOVER (Zou and Donner 2008), so that no disagreement in a few images is not taken for none.
    One stratum if the known images hardly meet the other.
    """
    strata = [control, ~control]
    if any(stratum.any() and stratum[places].sum() < LEAST_IN_STRATUM for stratum in strata):
        strata = [np.ones_like(control)]
    value = below = above = 0.0
    for stratum in strata:
        known = decided[stratum[places]]
        if not len(known):
            continue
        weight, share = float(stratum.mean()), float(known.mean())
        bounds = stats.binomtest(int(known.sum()), len(known)).proportion_ci(CONFIDENCE, method="wilson")
        value += weight * share
        below += (weight * (share - bounds.low)) ** 2
        above += (weight * (bounds.high - share)) ** 2
    return Estimated(value, max(0.0, value - math.sqrt(below)), min(1.0, value + math.sqrt(above)))


def _saving(cheap: Frame, full: Frame) -> float | None:
    """Noise samples of ``full`` on all images, as a multiple of those that both logs took."""
    some, each = evaluations(cheap), evaluations(full)
    if some is None or each is None:
        return None
    return each * len(cheap) / (some * len(cheap) + each * len(full))
