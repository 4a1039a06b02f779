"""Which n and alpha a log of radii allows.

With n copies only n+1 counts are possible, so radii lie on a grid that depends on n and alpha;
its largest element is sigma * Phi^-1(alpha^(1/n)) (Cohen et al. 2019, section 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from scipy import special

from smoothctl.reporting.frames import Floats, Frame
from smoothctl.reporting.measures.resolution import printing, slack
from smoothctl.smoothing.bounds import clopper_pearson_lower

COPIES = (100, 1_000, 10_000, 100_000)
ALPHAS = (0.001, 0.01)
SIGMAS = (0.12, 0.25, 0.5, 1.0)
# Below, the grid of many copies is finer than three printed digits, and every radius is attainable.
INFORMATIVE = 2.5
LUCK = math.log(1e-6)


@dataclass(frozen=True)
class Fit:
    """How many of the telling radii (above 2.5 sigma at many copies) are attainable with this sigma, n and
    alpha; ``luck`` is the natural logarithm of the chance that radii printed so coarsely all are, if the
    log was made otherwise."""

    sigma: float
    n: int
    alpha: float
    attainable: int
    radii: int
    below_cap: bool
    luck: float

    @property
    def possible(self) -> bool:
        return self.below_cap and self.attainable == self.radii


@cache
def attainable(n: int, alpha: float) -> Floats:
    """All radii that CERTIFY can return at sigma 1, ascending, by the count from the least that does not abstain."""
    z = special.ndtri(clopper_pearson_lower(np.arange(n // 2, n + 1), n, alpha))
    return np.asarray(z[z >= 0])


def try_fits(frame: Frame, sigma: float) -> list[Fit]:
    """Try the usual n and alpha against the radii of a log."""
    form = printing(frame.radius)
    distinct, counts = np.unique(frame.radius[frame.radius > 0], return_counts=True)
    room = slack(distinct, form) * (1 + 1e-9) + 1e-12 * distinct
    found = []
    for n, alpha in product(COPIES, ALPHAS):
        grid = sigma * attainable(n, alpha)
        if not len(grid):
            continue
        below = bool(distinct[-1] <= grid[-1] + room[-1])
        if not below and n < max(COPIES):
            continue
        place = np.searchsorted(grid, distinct - room)
        on_grid = (place < len(grid)) & (grid[np.minimum(place, len(grid) - 1)] <= distinct + room)
        # With few copies the whole grid is coarser than what is printed, and every radius tells.
        telling = distinct > INFORMATIVE * sigma if n == max(COPIES) else np.ones_like(on_grid)
        luck = _luck(grid, distinct[telling], room[telling])
        found.append(
            Fit(sigma, n, alpha, int(counts[on_grid & telling].sum()), int(counts[telling].sum()), below, luck)
        )
    return found


def _luck(grid: Floats, radius: Floats, room: Floats) -> float:
    """Sum over these distinct radii of the logarithm of the share of places that lie within rounding of the grid."""
    if len(grid) < 2 or not len(radius):
        return 0.0
    at = np.clip(np.searchsorted(grid, radius), 1, len(grid) - 1)
    share = 2 * np.maximum(room, 1e-12) / (grid[at] - grid[at - 1])
    return float(np.sum(np.log(np.minimum(1.0, share))))


def needs_detection(frame: Frame) -> bool:
    """Whether a log has radii and does not state its alpha."""
    return frame.kind == "certify" and frame.alpha is None and bool((frame.radius > 0).any())


def detect(frame: Frame) -> tuple[Frame, str]:
    """Fill in sigma, n and alpha of a log that does not state them, where its radii leave one choice.

    The text says what was found, or why nothing was.
    """
    tried = [fit for sigma in ([frame.sigma] if frame.sigma else SIGMAS) for fit in try_fits(frame, sigma)]
    possible = [fit for fit in tried if fit.possible and fit.radii]
    if not frame.sigma:
        # A sigma that is too large explains any radius: prefer one whose largest radius is reached.
        reached = {fit.sigma for fit in possible if _reaches_cap(frame, fit)}
        possible = [fit for fit in possible if fit.sigma in reached] or possible
    possible = _most_telling(possible)
    if len(possible) != 1:
        return frame, _undecided(frame, tried, possible)
    fit = possible[0]
    others = [
        f"{other.attainable}/{other.radii} at alpha {other.alpha:g}"
        for other in tried
        if (other.sigma, other.n) == (fit.sigma, fit.n) and other is not fit
    ]
    found = {"sigma": fit.sigma, "n": fit.n, "alpha": fit.alpha}
    known = {key: value for key, value in frame.settings.items() if value is not None}
    guessed = frozenset(found) - frozenset(known)
    text = (
        f"its radii allow n={fit.n}, alpha={fit.alpha:g} at sigma {fit.sigma:g}"
        f" ({fit.attainable}/{fit.radii} telling radii are attainable; {', '.join(others)})"
    )
    return replace(frame, settings={**found, **known}, guessed=guessed), text


def _most_telling(possible: list[Fit]) -> list[Fit]:
    """Leave the one fit that luck does not explain, if there is one; a fine grid fits whatever is printed."""
    ordered = sorted(possible, key=lambda fit: fit.luck)
    if len(ordered) > 1 and ordered[0].luck < LUCK and ordered[0].luck < 2 * ordered[1].luck:
        return ordered[:1]
    return possible


def _reaches_cap(frame: Frame, fit: Fit) -> bool:
    largest = np.array([np.nanmax(frame.radius)])
    cap = fit.sigma * attainable(fit.n, fit.alpha)[-1]
    return bool(abs(largest[0] - cap) <= slack(largest, printing(frame.radius))[0] + 1e-9)


def _undecided(frame: Frame, tried: list[Fit], possible: list[Fit]) -> str:
    largest = float(np.nanmax(frame.radius))
    where = f" at sigma {frame.sigma:g}" if frame.sigma else ""
    if possible:
        choices = "; ".join(f"sigma {fit.sigma:g}, n={fit.n}, alpha={fit.alpha:g}" for fit in possible)
        return f"its radii leave the settings undecided (largest {largest:g}): {choices}"
    if any(fit.possible for fit in tried):
        return f"no radius is large enough to tell n and alpha{where} (largest {largest:g})"
    return f"its radii (largest {largest:g}) fit none of the usual n and alpha{where}"
