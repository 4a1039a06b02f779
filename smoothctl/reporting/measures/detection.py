"""Which n and alpha a log of radii allows.

Of n noise samples only n+1 counts are possible, so radii lie on a grid that depends on n and alpha; its largest
element is sigma * Phi^-1(alpha^(1/n)) (Cohen et al. 2019, section 4). Logs that do not say how they were made are
taken to be of Gaussian noise, the field's.

A fine grid comes near any radius, so that a fit alone says little. Its evidence is the likelihood of the radii on the
grid against radii that lie anywhere: where neighbours on the grid are d apart and radii are printed to within w, one
on the grid counts log(d / 2w). A choice is made only if its evidence is overwhelming, by itself (it might be none of
the usual ones) and against every other that fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from scipy import special

from smoothctl.reporting.frames import Floats, Frame
from smoothctl.reporting.measures.resolution import widest_slack
from smoothctl.smoothing.bounds import clopper_pearson_lower

SAMPLES = (100, 1_000, 10_000, 100_000)
ALPHAS = (0.001, 0.01)
SIGMAS = (0.12, 0.25, 0.5, 1.0)
# Below, the grid of many noise samples is finer than three printed digits, and every radius is attainable.
INFORMATIVE = 2.5
ALONE = math.log(100)  # most logs are made with usual settings
ALONE_ANY_SIGMA = math.log(1e6)
AGAINST_OTHERS = math.log(1e4)


@dataclass(frozen=True)
class Fit:
    """How many of the telling radii (above 2.5 sigma at many noise samples) are attainable with this sigma, n and
    alpha; ``possible`` if all radii are; ``evidence`` is the natural logarithm of how much likelier they are then."""

    sigma: float
    n: int
    alpha: float
    attainable: int
    radii: int
    possible: bool
    evidence: float


@cache
def attainable(n: int, alpha: float) -> Floats:
    """All radii that CERTIFY can return at sigma 1, ascending, by the count from the least that does not abstain."""
    z = special.ndtri(clopper_pearson_lower(np.arange(n // 2, n + 1), n, alpha))
    return np.asarray(z[z >= 0])


def try_fits(frame: Frame, sigma: float) -> list[Fit]:
    """Try the usual n and alpha against the radii of a log."""
    distinct, counts = np.unique(frame.radius[frame.radius > 0], return_counts=True)
    room = widest_slack(distinct) * (1 + 1e-9) + 1e-9 * distinct
    found = []
    for n, alpha in product(SAMPLES, ALPHAS):
        grid = sigma * attainable(n, alpha)
        if not len(grid):
            continue
        place = np.minimum(np.searchsorted(grid, distinct - room), len(grid) - 1)
        on_grid = np.abs(grid[place] - distinct) <= room
        # With few noise samples the whole grid is coarser than what is printed, and every radius tells.
        telling = distinct > INFORMATIVE * sigma if n == max(SAMPLES) else np.ones_like(on_grid)
        found.append(
            Fit(
                sigma, n, alpha, int(counts[on_grid & telling].sum()), int(counts[telling].sum()),
                bool(on_grid.all()), _evidence(grid, place, room),
            )
        )  # fmt: skip
    return found


def _evidence(grid: Floats, place: np.ndarray, room: Floats) -> float:
    """Sum of log(what the grid has around a radius / width of printing), where that tells anything."""
    if len(grid) < 2:
        return 0.0
    gaps = np.diff(grid)
    apart = (gaps[np.maximum(place - 1, 0)] + gaps[np.minimum(place, len(gaps) - 1)]) / 2
    return float(np.sum(np.maximum(0.0, np.log(apart / (2 * room)))))


def needs_detection(frame: Frame) -> bool:
    """Whether a log has radii and does not state its alpha."""
    return frame.kind == "certify" and frame.alpha is None and bool((frame.radius > 0).any())


def detect(frame: Frame) -> tuple[Frame, str]:
    """Fill in sigma, n and alpha of a log that does not state them, where its radii leave one choice.

    The text says what was found, or why nothing was.
    """
    tried = [fit for sigma in ([frame.sigma] if frame.sigma else SIGMAS) for fit in try_fits(frame, sigma)]
    possible = sorted((fit for fit in tried if fit.possible), key=lambda fit: -fit.evidence)
    if not possible or not _overwhelming(possible, ALONE if frame.sigma else ALONE_ANY_SIGMA):
        return frame, _undecided(frame, tried, possible)
    fit = possible[0]
    others = [
        f"{other.attainable}/{other.radii} at alpha {other.alpha:g}"
        for other in tried
        if (other.sigma, other.n) == (fit.sigma, fit.n) and other is not fit
    ]
    found = {"sigma": fit.sigma, "n": fit.n, "alpha": fit.alpha}
    known = {key: value for key, value in frame.settings.items() if value is not None}
    guessed = frame.guessed | (frozenset(found) - frozenset(known))
    text = (
        f"its radii allow n={fit.n}, alpha={fit.alpha:g} at sigma {fit.sigma:g}"
        f" ({fit.attainable}/{fit.radii} telling radii are attainable; {', '.join(others)})"
    )
    return replace(frame, settings={**found, **known}, guessed=guessed), text


def _overwhelming(ordered: list[Fit], alone: float) -> bool:
    """Whether the first of these fits is beyond doubt."""
    first, *others = ordered
    return first.evidence >= alone and all(first.evidence - other.evidence >= AGAINST_OTHERS for other in others)


def _undecided(frame: Frame, tried: list[Fit], possible: list[Fit]) -> str:
    largest = float(np.nanmax(frame.radius))
    where = f" at sigma {frame.sigma:g}" if frame.sigma else ""
    if not possible:
        return f"its radii (largest {largest:g}) fit none of the usual n and alpha{where}"
    choices = "; ".join(f"sigma {fit.sigma:g}, n={fit.n}, alpha={fit.alpha:g}" for fit in possible[:4])
    more = f" and {len(possible) - 4} more" if len(possible) > 4 else ""
    return f"its radii leave n and alpha undecided{where} (largest {largest:g}): {choices}{more}"
