"""Which of chosen radii are proved, by an exact group-sequential test that stops as soon as that is clear."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from smoothctl import (
    ABSTAIN,
    Case,
    Certificate,
    Option,
    Radii,
    Request,
    Rule,
    Settings,
    SmoothctlWarning,
    StoppingRule,
    Stream,
    Tells,
    UsageError,
    hookimpl,
    without_estimate,
)

if TYPE_CHECKING:
    from .group_sequential import Plan


def _rising(radii: tuple[float, ...]) -> tuple[float, ...]:
    if not radii:
        raise ValueError("must not be empty")
    if list(radii) != sorted(set(radii)):
        raise ValueError("must rise, without repetition")
    return radii


class Options(Settings):
    radii: Annotated[
        Radii,
        AfterValidator(_rising),
        Option(
            "Ask only which of these radii are proved: the same guarantee with far fewer samples (n: 125000 at most).",
            metavar="R,R,...",
        ),
    ]


def plan(case: Case) -> Callable[[], Rule[Certificate]]:
    """The test of the case's radii; raises UsageError if n can prove none, and warns of those that it cannot."""
    from .group_sequential import LEAST_ALPHA, plan_radii

    n, alpha = case.n, case.alpha
    if alpha < LEAST_ALPHA:
        raise UsageError(
            f"radii computes its error probability to {LEAST_ALPHA:g}, so that no n proves anything at "
            f"alpha={alpha:g}; give a larger alpha, or leave radii out"
        )
    planned = plan_radii(case.options.radii, case.radius, alpha, n)
    if planned.out_of_reach:
        named = ", ".join(f"{radius:g}" for radius in planned.out_of_reach)
        told = (
            f"n={n} noise samples can never prove the radius {named} at sigma={case.sigma:g} and alpha={alpha:g}; "
            "leave it out, or give a larger n"
        )
        if planned.out_of_reach == planned.radii:
            raise UsageError(told)
        warnings.warn(told, SmoothctlWarning, stacklevel=2)
    return lambda: group_sequential(case.n0, planned)


def group_sequential(n0: int, plan: Plan) -> Rule[Certificate]:
    """Select on n0 noise samples, or as few as make the class clear; then one interim analysis after the other until
    every radius of the plan is proved or out of reach."""
    from .group_sequential import is_clear, is_futile, schedule

    for selected in schedule(n0):
        selection = yield Request(Stream.SELECT, selected)
        top = int(selection.argmax())
        known = selected, selected - int(selection[top])
        if is_clear(*known):
            break
    proved = 0
    if is_futile(plan, proved, 0, 0, known):
        return without_estimate(top, selection, "not certified")
    for analysis, n in enumerate(plan.sizes):
        votes = yield Request(Stream.ESTIMATE, n)
        failures = n - int(votes[top])
        while proved < len(plan.radii) and failures <= plan.bounds[proved][analysis]:
            proved += 1
        verdict = "undecided"
        if proved == len(plan.radii):
            verdict = "certified"
            break
        if n < plan.sizes[-1] and is_futile(plan, proved, n, failures, known):
            verdict = "not certified"
            break
    if proved == 0:
        return Certificate(top, ABSTAIN, 0.0, 0.0, n, votes, selection, verdict)
    return Certificate(top, top, plan.thresholds[proved - 1], plan.radii[proved - 1], n, votes, selection, verdict)


@hookimpl
def register_rules() -> list[StoppingRule]:
    return [
        StoppingRule(
            name="radii", plan=plan, Options=Options,
            summary="which of chosen radii are proved, by an exact group-sequential test",
            tells=Tells(grid="radii"),
            # Stopping for futility makes images cheap, so the few that need it may use more: nothing is lost to the
            # limit.
            default_n=125_000, saving=50, examples=({"radii": (0.0,)}, {"radii": (0.0, 0.1, 0.2, 0.4)}),
        )
    ]  # fmt: skip
