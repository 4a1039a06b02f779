"""Stopping rules: how many noise samples an image gets, and what its votes prove."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from smoothctl.base.settings import Settings
from smoothctl.hooks.noises import ABSTAIN, Noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from smoothctl.base.streams import Stream

    Votes = NDArray[np.int64]
else:
    Votes = Any  # so that neither help nor reports wait for NumPy

Outcome = TypeVar("Outcome")


class Request(NamedTuple):
    """The votes of the first ``total`` noise samples of a stream."""

    stream: Stream
    total: int


Rule = Generator[Request, Votes, Outcome]
"""Decides one image: it asks for votes, is sent counts per class [K], and returns the outcome."""

Bound = Callable[[int, Votes, Votes], tuple[float, float]]
"""From (top, votes, selection) to (lower bound on p_A, radius); a negative radius abstains."""


@dataclass(frozen=True)
class Certificate:
    """What was proved for one image, with probability at least 1-alpha over the noise.

    top: the class selected; predict: the class certified, or ABSTAIN; p_lower: proved lower bound
    on p_A; radius: in the noise's norm, in units of pixels in [0,1], 0 when abstaining; n: noise samples
    used for estimation; votes, selection: counts per class of that sample, and of the samples that chose
    the class and n; verdict: ``certified``, ``abstained``, ``not certified`` (stopped for futility),
    ``undecided`` (at the limit of n) or ``misclassified`` (skipped, since the selected class is not the label);
    arithmetic: in which noise was added, ``exact, grid 1/255`` or ``float``.
    """

    top: int
    predict: int
    p_lower: float
    radius: float
    n: int
    votes: Votes
    selection: Votes
    verdict: str
    arithmetic: str = "float"


def estimated(top: int, votes: Votes, selection: Votes, bound: Bound) -> Certificate:
    """The certificate that a bound gives from an estimation sample whose size does not depend on its votes."""
    p_lower, radius = bound(top, votes, selection)
    n = int(votes.sum())
    if radius < 0:
        return Certificate(top, ABSTAIN, p_lower, 0.0, n, votes, selection, "abstained")
    return Certificate(top, top, p_lower, radius, n, votes, selection, "certified")


def without_estimate(top: int, selection: Votes, verdict: str) -> Certificate:
    """An abstention on the selection votes alone."""
    return Certificate(top, ABSTAIN, 0.0, 0.0, 0, 0 * selection, selection, verdict)


@dataclass(frozen=True)
class Case:
    """What one job asks of a stopping rule.

    n0: noise samples that select the class; n: the most that may estimate p_A; ``bound(alpha)``: what an estimation
    sample proves that is wrong with probability alpha at most; ``radius(p)``: what p_A >= p >= 1/2 proves in the
    job's arithmetic, negative if nothing; options: the rule's own.
    """

    n0: int
    n: int
    alpha: float
    noise: Noise
    sigma: float
    bound: Callable[[float], Bound]
    radius: Callable[[float], float]
    options: Any


NFrom = Literal["settings", "pilot", "votes"]


@dataclass(frozen=True)
class Tells:
    """What can be read off the rows that a rule leaves.

    n_from: what n depends on: the ``settings``, an independent ``pilot``, or the estimation ``votes`` themselves, in
    which case votes on record prove nothing under other settings. grid: the option that lists the radii that rows
    are about; empty if each row holds the largest radius that was proved, so that ACR means something.
    """

    n_from: NFrom = "votes"
    grid: str = ""


class NoOptions(Settings):
    """For rules that take none."""


@dataclass(frozen=True)
class StoppingRule:
    """A way to stop, with its options, what it tells, and how it is described.

    ``plan(case)`` checks the options against the case, which may raise UsageError, and gives a function that begins a
    fresh generator for each image. The generator's certificate must be false with probability alpha at most, whatever
    the probabilities of the classes are; :func:`smoothctl.testing.check_rule` computes that probability for
    ``examples`` of options. Options are declared as fields with an ``Option``; they become flags of ``certify``,
    and a rule is chosen by its name or by any of its options.

    bounds: the bounds on p_A that it can use; default_n: the limit of n where the user gives none; pilot: noise
    samples that an image may take beyond n0 and n; saving: the limit over the samples of an average image, about.
    """

    name: str
    plan: Callable[[Case], Callable[[], Rule[Certificate]]]
    summary: str = ""
    Options: type[Settings] = NoOptions
    tells: Tells = field(default_factory=Tells)
    bounds: Sequence[str] = ("binary",)
    default_n: int = 100_000
    pilot: int = 0
    saving: int = 1
    examples: Sequence[Mapping[str, Any]] = ({},)
    aliases: tuple[str, ...] = ()
