"""Requirements: what they mean, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoothctl.base.errors import UsageError
from smoothctl.reporting import gates
from smoothctl.reporting.measures import metrics
from tests.reporting.make import certified_frame, radius_frame

FRAME = radius_frame([0.6, 0.1, 0.0, 0.9], [3, 3, -1, 5], [3, 3, 3, 3], settings={"alpha": 0.001, "sigma": 0.5})


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("acc@0.5>=0.25", True), ("acc@0.5>=25%", True), ("acc@0.5>0.25", False), ("acc@0.6>=0.25", True),
        ("acr>=0.175", True), ("acr>0.176", False), ("abstain<=0.25", True), ("abstain<0.25", False),
        ("clean>=0.5", True), (" acc @ 0.25 <= 0.25 ", True), ("lcb@0>=0.5", False), ("lcb@0>=0.25", True),
    ],
)  # fmt: skip
def test_known_requirements(text: str, met: bool):
    assert (gates.check(gates.parse(text), FRAME, 0.001) is None) == met


@given(st.floats(0, 2), st.floats(0, 1))
def test_a_requirement_compares_the_unrounded_figure(radius, limit):
    found = gates.check(gates.parse(f"acc@{radius!r}>={limit!r}"), FRAME, 0.001)
    assert (found is None) == (metrics.certified_accuracy(FRAME, [radius])[0] >= limit)


def test_the_reason_names_log_and_figure():
    assert gates.check(gates.parse("acc@0.5>=0.6"), FRAME, 0.001) == "acc@0.5>=0.6: log has 0.25"


@pytest.mark.parametrize(
    "text", ["acc>=0.5", "acr@1>=0.5", "acc@0.5=0.5", "acc@0.5>=60", "speed>=1", "acc@x>=0.5", "acc@1.1.1>=0", ""]
)
def test_what_is_no_requirement(text: str):
    with pytest.raises(UsageError, match="`require="):
        gates.parse(text)


def test_what_cannot_be_known_is_not_met():
    grid = radius_frame([0.5], [1], [1], settings={"rule": "radii", "radii": [0.5]})
    assert "grid of radii" in gates.check(gates.parse("acr>=0"), grid, 0.001)
    assert "alpha" in gates.check(gates.parse("lcb@0>=0"), grid, 0.001)


def test_every_log_has_to_meet_each():
    good = certified_frame([[1000, 0]], [0], name="good")
    reasons = gates.failures([gates.parse("acr>=1"), gates.parse("clean>=0.9")], [good, FRAME], 0.001)
    assert [reason.split(": ")[1].split()[0] for reason in reasons] == ["log", "log"]
