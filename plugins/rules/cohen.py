"""CERTIFY of Cohen et al. 2019: the same number of noise samples for every image."""

from __future__ import annotations

from collections.abc import Callable

from smoothctl import Case, Certificate, Request, Rule, StoppingRule, Stream, Tells, estimated, hookimpl


def plan(case: Case) -> Callable[[], Rule[Certificate]]:
    bound = case.bound(case.alpha)

    def certify() -> Rule[Certificate]:
        """Cohen et al. 2019, section 3.2.2: select on n0 noise samples, estimate on n fresh ones."""
        selection = yield Request(Stream.SELECT, case.n0)
        votes = yield Request(Stream.ESTIMATE, case.n)
        return estimated(int(selection.argmax()), votes, selection, bound)

    return certify


@hookimpl
def register_rules() -> list[StoppingRule]:
    return [
        StoppingRule(
            name="cohen", plan=plan, summary="n noise samples for every image (Cohen et al. 2019, CERTIFY)",
            tells=Tells(n_from="settings"), bounds=("binary", "multi"),
        )
    ]  # fmt: skip
