"""A stopping rule: certify with a tenth of n at alpha/2; only where that abstains, with n at alpha/2 (union bound)."""

from typing import Annotated

from smoothctl import Option, Request, Settings, StoppingRule, Stream, Tells, estimated, hookimpl


class Options(Settings):
    first: Annotated[float, Option("Fraction of n that is tried first.")] = 0.1


def plan(case):
    def certify():
        selection = yield Request(Stream.SELECT, case.n0)
        top = int(selection.argmax())
        for n in (max(1, round(case.options.first * case.n)), case.n):
            votes = yield Request(Stream.ESTIMATE, n)
            certificate = estimated(top, votes, selection, case.bound(case.alpha / 2))
            if certificate.verdict == "certified":
                break
        return certificate

    return certify


@hookimpl
def register_rules():
    return [
        StoppingRule(
            "two-chances", plan, "n only where a tenth of it abstains", Options, Tells(n_from="votes"), saving=5
        )
    ]
