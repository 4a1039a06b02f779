"""Measuring which way to compute something is the fastest."""

from __future__ import annotations

import pytest

from smoothctl.base import timing
from smoothctl.base.timing import describe, fastest, least_seconds


def test_the_first_stays_unless_another_saves_a_twentieth() -> None:
    assert fastest({"fp32": 1.0, "bf16": 0.96}) == "fp32"
    assert fastest({"fp32": 1.0, "bf16": 0.9}) == "bf16"
    assert fastest({"fp32": 1.0, "tf32": 0.5, "bf16": 0.4}) == "bf16"
    assert fastest({"fp32": 1.0}) == "fp32"


def test_what_is_hopeless_at_first_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    now = iter(range(1000))

    def slow() -> None:
        tried.append("slow")
        for _ in range(60):
            next(now)

    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(now))
    found = least_seconds(
        {"quick": lambda: tried.append("quick"), "slow": slow, "other": lambda: tried.append("other")}
    )
    assert tried == ["quick", "slow", "other", *["quick", "other"] * timing.ROUNDS]
    assert found == {"quick": 1, "slow": 61, "other": 1}
    assert describe(found) == "quick 1000.0 ms, slow 61000.0 ms, other 1000.0 ms"
