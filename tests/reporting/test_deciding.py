"""A verdict that is final before all images are done is the verdict on all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoothctl.base.errors import UsageError
from smoothctl.reporting import gates
from smoothctl.reporting.deciding import Verdict, asked_for, read_requirements
from smoothctl.smoothing.procedure import resolve
from smoothctl.smoothing.settings import CertifySettings
from tests.reporting.make import radius_frame

TESTS = ("acc@0.5>=0.6", "acc@0.5>0.6", "acc@0.5<=30%", "acc@0.5<0.3", "lcb@0.5>=0.4", "acc@0>=0.8", "acc@0.25>=0")


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.3, 0.5, 0.7])), min_size=1, max_size=60),
       st.lists(st.sampled_from(TESTS), min_size=1, max_size=3, unique=True))  # fmt: skip
def test_a_final_verdict_is_the_one_that_a_report_on_all_images_gives(outcomes, texts):
    radius = [radius for _, radius in outcomes]
    frame = radius_frame(radius, [int(right) for right, _ in outcomes], [1] * len(outcomes), settings={"alpha": 0.01})
    parsed = [gates.parse(text) for text in texts]
    whole = all(gates.check(gate, frame, 0.001) is None for gate in parsed)
    verdict = Verdict(parsed, len(outcomes), 0.01)
    early = None
    for right, radius in outcomes:
        early = verdict.met if early is None else early
        verdict.add(right, radius)
    assert early in (None, whole)
    assert verdict.met is whole


def test_it_is_decided_no_later_than_possible():
    verdict = Verdict([gates.parse("acc@0.5>=60%")], 100, 0.001)
    for _ in range(59):
        verdict.add(True, 0.5)
    assert not verdict.decided
    verdict.add(True, 0.5)
    assert verdict.met
    assert verdict.describe() == "acc@0.5>=60% is met (60 certified) after 60 of 100 images"
    failed = Verdict([gates.parse("acc@0.5>=60%")], 100, 0.001)
    for _ in range(41):
        failed.add(False, 0.9)
    assert failed.met is False


def test_only_what_the_requirements_need_is_asked():
    parsed = read_requirements(["acc@0.5>=60%", "lcb@0.25>=50%"])
    settings, options = asked_for(CertifySettings(), {}, parsed)
    procedure = resolve(settings, options)
    assert (options["radii"], procedure.n, procedure.skip_misclassified) == ((0.25, 0.5), 125_000, True)
    assert resolve(*asked_for(CertifySettings(n=1000), {}, parsed)).n == 1000
    assert asked_for(CertifySettings(), {"budget": "fast"}, parsed)[1] == {"budget": "fast"}
    assert asked_for(CertifySettings(), {}, []) == (CertifySettings(), {})
    with pytest.raises(UsageError, match="asks about the radius"):
        asked_for(CertifySettings(), {"radii": (0.25,)}, parsed)


@pytest.mark.parametrize(
    ("text", "said"),
    [("acr>=0.5", "smoothctl report --require 'acr>=0.5'"), ("lcb@0<0.5", "says nothing"), ("acc>=1", "write acc@R")],
)
def test_requirements_that_certificates_cannot_decide_early_are_refused(text: str, said: str):
    with pytest.raises(UsageError, match=said):
        read_requirements([text])
