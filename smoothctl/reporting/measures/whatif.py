"""The same run under other settings, from its votes: no network is run again.

Needs the count of the selected class, from the votes on record, or worked out from the radius where
sigma, n and alpha are known. A radius is what the log's noise proves from p_lower; logs that name none are Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from smoothctl.base.errors import UsageError
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.reporting import noises
from smoothctl.reporting.frames import Floats, Frame, Ints
from smoothctl.reporting.measures import olderbounds
from smoothctl.reporting.measures.detection import attainable
from smoothctl.reporting.measures.resolution import widest_slack
from smoothctl.smoothing.tails import lowered, proven_lowers

KINDS = ("alpha", "n", "bound")
BOUNDS = {"lecuyer2019": olderbounds.lecuyer, "li2018": olderbounds.li}


class Law(NamedTuple):
    """From bounds on p_A to the radii that they prove."""

    name: str
    radius: Callable[[Floats], Floats]
    whole: bool = False
    """Radii are whole numbers, from which no margin for rounding is taken."""


def apply(frame: Frame, kind: str, value: str) -> Frame:
    """The log as it would have been with ``alpha``, ``n`` or ``bound`` of this value.

    Raises UsageError for a value out of range, and for a log from which it cannot be known.
    """
    check(kind, value)
    if kind == "bound":
        return with_bound(frame, value)
    number = _number(kind, value)
    if kind == "alpha":
        return at_alpha(frame, number)
    n = int(number)
    now = int(frame.n.max()) if (frame.n > 0).any() else int(frame.settings.get("n", 0))
    return projected(frame, n) if n > now else thinned(frame, n)


def parse(text: str) -> tuple[str, str]:
    """Read ``name=value``; raises UsageError for a name or value that no log can have."""
    kind, equals, value = map(str.strip, text.partition("="))
    if not equals:
        raise UsageError(f"`what_if={text}`: write it as name=value")
    check(kind, value)
    return kind, value


def check(kind: str, value: str) -> None:
    """Raise UsageError for a kind or value that no log can have."""
    if kind not in KINDS:
        raise UsageError(f"`what_if={kind}`: choose {', '.join(KINDS)}")
    if kind != "bound":
        _number(kind, value)
    elif value not in BOUNDS:
        raise UsageError(f"`what_if=bound={value}`: choose {' or '.join(BOUNDS)}")


def _number(kind: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise UsageError(f"`what_if={kind}={value}`: not a number") from None
    if kind == "alpha" and not 0 < number < 0.5:
        raise UsageError(f"`what_if=alpha={value}`: alpha must lie between 0 and 1/2")
    if kind == "n" and not (number >= 1 and number == int(number)):
        raise UsageError(f"`what_if=n={value}`: n must be a whole number, at least 1")
    return number


def counts(frame: Frame) -> tuple[Ints, Ints]:
    """Votes for the selected class and the size of the sample, image by image; -1 where not known.

    Raises UsageError for a log from which they cannot be told.
    """
    if frame.kind != "certify":
        raise UsageError(f"{frame.path}: a prediction log has no radii to work out again")
    if frame.tells.n_from == "votes":
        raise UsageError(
            f"{frame.path}: its stopping rule ({frame.settings.get('rule')}) stopped by the votes themselves, at its "
            "own alpha and n"
        )
    if frame.settings.get("bound", "binary") != "binary":
        raise UsageError(f"{frame.path}: made with `bound={frame.settings['bound']}`, whose radii take more than p_A")
    if frame.votes_text:
        votes = [votes.get(int(top), 0) for votes, top in zip(frame.votes, frame.top, strict=True)]
        return np.where(frame.failed | (frame.n < 1), -1, votes), frame.n
    sigma, n, alpha = frame.sigma, frame.settings.get("n"), frame.alpha
    if sigma is None or n is None or alpha is None or frame.norm != "l2":
        raise UsageError(
            f"{frame.path}: it has no votes, and no sigma, n and alpha with Gaussian noise in L2, by which its "
            "radii could tell them"
        )
    least, _ = _printed_counts(frame, sigma, int(n), alpha)
    return np.where(frame.predict == ABSTAIN, -1, least), np.full(len(frame), int(n))


def _printed_counts(frame: Frame, sigma: float, n: int, alpha: float) -> tuple[Ints, Ints]:
    """The least and the largest count that each printed radius allows: only the least is proved by it."""
    grid = sigma * attainable(n, alpha)
    room = widest_slack(frame.radius) + 1e-9 * frame.radius + 1e-12
    least = np.searchsorted(grid, frame.radius - room, side="left")
    largest = np.maximum(least, np.searchsorted(grid, frame.radius + room, side="right") - 1)
    first = n + 1 - len(grid)
    return first + np.minimum(least, len(grid) - 1), first + np.minimum(largest, len(grid) - 1)


def _ambiguous(frame: Frame) -> int:
    """Rows whose printed radius allows several counts."""
    sigma, n, alpha = frame.sigma, frame.settings.get("n"), frame.alpha
    if sigma is None or n is None or alpha is None:
        return 0
    least, largest = _printed_counts(frame, sigma, int(n), alpha)
    return int(np.sum((frame.predict != ABSTAIN) & (least < largest)))


def at_alpha(frame: Frame, alpha: float) -> Frame:
    """Exact: the bound on the same votes at another alpha.

    Without votes, an image that abstained is not known to do otherwise at a larger alpha.
    """
    k, n = counts(frame)
    return _decide(frame, k, n, alpha, f"alpha={alpha:g}", {"alpha": alpha})


def _require_fixed_n(frame: Frame, other: str) -> None:
    if frame.tells.n_from != "settings":
        name = frame.settings.get("rule")
        raise UsageError(f"{frame.path}: n is not fixed under the stopping rule {name}, so a {other} n has no meaning")


def thinned(frame: Frame, n: int, seed: int = 0) -> Frame:
    """A smaller n, exact in distribution: n of the votes drawn without replacement (hypergeometric)."""
    k, whole = counts(frame)
    _require_fixed_n(frame, "smaller")
    known = k >= 0
    drawn = np.full_like(k, -1)
    size = np.minimum(n, whole[known])
    drawn[known] = np.random.default_rng(seed).hypergeometric(k[known], whole[known] - k[known], size)
    return _decide(frame, drawn, np.minimum(n, whole), _alpha(frame), f"n={n}, thinned", {"n": n})


def projected(frame: Frame, n: int) -> Frame:
    """A larger n as a projection, without guarantee: the same shares of votes (Cohen et al. 2019, figure 8)."""
    k, whole = counts(frame)
    _require_fixed_n(frame, "larger")
    grown = np.where(k >= 0, k * n // np.maximum(whole, 1), -1)
    told = _decide(frame, grown, np.full_like(whole, n), _alpha(frame), f"n={n}, PROJECTION", {"n": n})
    return replace(told, projection=True)


def with_bound(frame: Frame, name: str) -> Frame:
    """The radii that an older bound proves from the same lower bounds on p_A (Cohen et al. 2019, figure 8)."""
    p = lower_bounds(frame)
    sigma = frame.sigma
    assert sigma is not None
    certified = (frame.predict != ABSTAIN) & (p > 0.5)
    radius = np.where(frame.predict != ABSTAIN, 0.0, frame.radius)
    distinct, back = np.unique(p[certified], return_inverse=True)
    radius[certified] = (sigma * BOUNDS[name](distinct, 1 - distinct))[back]
    return replace(frame, radius=radius, note=_noted(frame, f"bound={name}"))


def lower_bounds(frame: Frame) -> Floats:
    """Lower bounds on p_A, image by image; 0 where not known. Radii must be those of Gaussian noise, in L2."""
    k, n = counts(frame)
    _require_radii(frame, k, n, _gaussian(frame.sigma))
    return _bound(frame, k, n, _alpha(frame))


def _alpha(frame: Frame) -> float:
    if frame.alpha is None:
        raise UsageError(f"{frame.path}: its alpha is not known")
    return frame.alpha


def _bound(frame: Frame, k: Ints, n: Ints, alpha: float) -> Floats:
    """Proved like the log's own: rounded down, less the distance of the drawn noise from its law."""
    known = k >= 0
    p = np.zeros(len(k))
    p[known] = np.maximum(0.0, proven_lowers(k[known], n[known], alpha) - float(frame.about.get("distance", 0.0)))
    return p


def _require_radii(frame: Frame, k: Ints, n: Ints, law: Law) -> None:
    """Refuse a log whose own radii do not follow from its votes by this law."""
    if not frame.votes_text:
        return
    own = _radii(_bound(frame, k, n, _alpha(frame)), law, frame.sigma)
    shown = ~frame.failed & (frame.predict != ABSTAIN)
    if not np.allclose(own[shown], frame.radius[shown], rtol=1e-6, atol=1e-9):
        raise UsageError(
            f"{frame.path}: its radii do not follow from its votes as those of {law.name}, so others cannot either"
        )


def _law(frame: Frame) -> Law:
    """What bounds on p_A prove in a log: asked of its noise, else Gaussian's."""
    noise = noises.noise_of(frame) if frame.settings.get("noise") else None
    radius = noises.radius_of(frame) if noise else None
    if noise is None or radius is None:
        return _gaussian(frame.sigma)
    return Law(f"{noise.name} noise", radius, noise.whole)


def _gaussian(sigma: float | None) -> Law:
    return Law("Gaussian noise, sigma * Phi^-1(p)", lambda p: (sigma or 0.0) * special.ndtri(p))


def _radii(p: Floats, law: Law, sigma: float | None) -> Floats:
    if sigma is None:
        raise UsageError("sigma is not known")
    radii = law.radius(np.maximum(p, 0.5))
    return np.where(p >= 0.5, radii if law.whole else lowered(radii, sigma), 0.0)


def _decide(frame: Frame, k: Ints, n: Ints, alpha: float, note: str, settings: dict[str, Any]) -> Frame:
    own_k, own_n = counts(frame)
    law = _law(frame)
    _require_radii(frame, own_k, own_n, law)
    p = _bound(frame, k, n, alpha)
    top = np.where(frame.top >= 0, frame.top, frame.predict)
    predict = np.where(p >= 0.5, top, ABSTAIN)
    return replace(
        frame,
        predict=predict,
        correct=(predict != ABSTAIN) & (predict == frame.label),
        radius=_radii(p, law, frame.sigma),
        n=n,
        votes_text=() if "n" in settings else frame.votes_text,
        settings={**frame.settings, **settings},
        guessed=frame.guessed - set(settings),
        note=_noted(frame, note if frame.votes_text else f"{note}, from radii{_counted(_ambiguous(frame))}"),
    )


def _counted(ambiguous: int) -> str:
    return f", the least count for {ambiguous} that print several" if ambiguous else ""


def _noted(frame: Frame, note: str) -> str:
    return f"{frame.note}; {note}" if frame.note else note
