"""n chosen for each image by what more noise samples promise, judged by an independent pilot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from smoothctl import (
    Bound,
    Case,
    Certificate,
    Option,
    Request,
    Rule,
    Settings,
    StoppingRule,
    Stream,
    Tells,
    estimated,
    hookimpl,
    without_estimate,
)

# What a further noise sample must gain, in radius per sigma, to be worth drawing.
COSTS = {"precise": 1.2e-6, "balanced": 2e-6, "fast": 6e-6, "draft": 1e-5}
# Selection with so few failures says little about p_A: then the pilot is extended, by so many.
NEARLY_UNANIMOUS = 3
PILOT_EXTENSION = 900


class Options(Settings):
    budget: Annotated[
        Literal["precise", "balanced", "fast", "draft"],
        Option("Choose n per image from a pilot: precise, balanced, fast or draft.", panel="Running"),
    ]


def plan(case: Case) -> Callable[[], Rule[Certificate]]:
    bound = case.bound(case.alpha)
    return lambda: two_stage(case, bound, COSTS[case.options.budget])


def two_stage(case: Case, bound: Bound, cost: float) -> Rule[Certificate]:
    """Select, choose how many noise samples the image is worth (at most n), estimate on as many fresh ones.

    Given selection and pilot n is fixed, so the bound holds at full alpha.
    """
    from .expected_radius import choose_n

    selection = yield Request(Stream.SELECT, case.n0)
    top = int(selection.argmax())
    failures, pilot = case.n0 - int(selection[top]), case.n0
    if failures <= NEARLY_UNANIMOUS:
        selection = selection + (yield Request(Stream.PILOT, PILOT_EXTENSION))
        pilot = case.n0 + PILOT_EXTENSION
        failures = pilot - int(selection[top])
    chosen = choose_n(failures, pilot, cost, case.noise, case.alpha, case.n)
    if chosen == 0:
        return without_estimate(top, selection, "abstained")
    votes = yield Request(Stream.ESTIMATE, chosen)
    return estimated(top, votes, selection, bound)


@hookimpl
def register_rules() -> list[StoppingRule]:
    return [
        StoppingRule(
            name="budget", plan=plan, Options=Options, summary="n chosen for each image from an independent pilot",
            tells=Tells(n_from="pilot"), bounds=("binary", "multi"), pilot=PILOT_EXTENSION, saving=5,
            examples=({"budget": "draft"},),
        )
    ]  # fmt: skip
