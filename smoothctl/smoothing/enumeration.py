"""Noise that has few values: all are evaluated, and what they prove is certain (Levine and Feizi 2021)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from smoothctl.base.streams import Stream
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.hooks.rules import Certificate, Request, Rule, Tells

RULE = "enumeration"


@dataclass(frozen=True)
class Enumeration:
    """How images are certified or predicted by every value of the noise; no alpha is spent."""

    count: int
    certifies: bool
    rule: Callable[[], Rule[Any]]
    norm: str | None = None
    fixed_n: ClassVar[bool] = True

    @property
    def most_samples(self) -> int:
        """Forward passes per image."""
        return self.count

    likely_samples = most_samples

    def record(self) -> dict[str, Any]:
        """What a log's settings say of it."""
        return {"rule": RULE, "n": self.count, "alpha": 0.0} | ({"n0": 0, "bound": "exact"} if self.certifies else {})

    def about(self) -> dict[str, Any]:
        """What its rows tell."""
        return {"tells": asdict(Tells(n_from="settings"))} if self.certifies else {}


def certify_all(count: int, radius: Callable[[int, int], float], arithmetic: str) -> Rule[Certificate]:
    """Certify by all ``count`` values; ``radius`` is what the votes for the two leading classes prove."""
    votes = yield Request(Stream.ESTIMATE, count)
    top, first, second = leading(votes)
    p_lower, none = first / count, 0 * votes
    if first == second:
        return Certificate(top, ABSTAIN, p_lower, 0.0, count, votes, none, "abstained", arithmetic)
    return Certificate(top, top, p_lower, radius(first, second), count, votes, none, "certified", arithmetic)


def leading(votes: Any) -> tuple[int, int, int]:
    """The leading class, its votes, and those of the next."""
    ordered = np.sort(votes)
    return int(votes.argmax()), int(ordered[-1]), int(ordered[-2]) if len(votes) > 1 else 0
