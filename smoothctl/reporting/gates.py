"""Requirements on a report, such as ``acc@0.5>=0.6``, for use in continuous integration."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from smoothctl.base.errors import UsageError
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import metrics

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
SYNTAX = re.compile(r"\s*(acc|lcb|acr|abstain|clean)\s*(?:@\s*([\d.eE+-]+?))?\s*(>=|<=|>|<)\s*([\d.eE+-]+)\s*(%?)\s*$")


@dataclass(frozen=True)
class Gate:
    """``measure`` (at ``radius``) must compare to ``limit``; shares are between 0 and 1."""

    text: str
    measure: str
    radius: float | None
    sign: str
    limit: float


def parse(text: str) -> Gate:
    """Read one requirement; raises UsageError for what is none."""
    found = SYNTAX.match(text)
    if found is None or (found[2] is None) != (found[1] not in ("acc", "lcb")):
        raise UsageError(
            f"`require={text}`: write acc@RADIUS, lcb@RADIUS, acr, abstain or clean, then >=, <=, > or <, then a "
            "number, as in acc@0.5>=0.6"
        )
    try:
        radius, limit = float(found[2]) if found[2] else None, float(found[4])
    except ValueError:
        raise UsageError(f"`require={text}`: not a number") from None
    if found[5]:
        limit /= 100
    if found[1] != "acr" and not 0 <= limit <= 1:
        raise UsageError(f"`require={text}`: a share lies between 0 and 1 (or write 60%)")
    if radius is not None and not radius >= 0:
        raise UsageError(f"`require={text}`: a radius cannot be negative")
    return Gate(text.strip(), found[1], radius, found[3], limit)


def check(gate: Gate, frame: Frame, rho: float) -> str | None:
    """None if a log meets the requirement, else the reason why not; what cannot be known is not met."""
    value, reason = measure(gate, frame, rho)
    if value is None:
        return f"{gate.text}: {frame.name}: {reason}"
    if COMPARE[gate.sign](value, gate.limit):
        return None
    return f"{gate.text}: {frame.name} has {value:.6g}"


def measure(gate: Gate, frame: Frame, rho: float) -> tuple[float | None, str]:
    """The figure that a requirement is about, or None and the reason why there is none."""
    if gate.measure == "clean":
        return float(frame.correct.mean()), ""
    if gate.measure == "abstain":
        return metrics.abstained(frame), "its stopping rule abstains where the least of its radii is not proved"
    if frame.kind != "certify":
        return None, "a prediction log has no radii"
    if gate.measure == "acr":
        return metrics.average_certified_radius(frame), metrics.NO_ACR
    assert gate.radius is not None
    count = metrics.certified_counts(frame, [gate.radius])[0]
    if gate.measure == "acc":
        return count / len(frame), ""
    if frame.projection:
        return None, "a projection proves nothing"
    if frame.alpha is None or frame.alpha > 0.5:
        return None, "its alpha is not known to be at most 1/2"
    return metrics.binomial_lower(count, len(frame), frame.alpha, rho), ""


def failures(gates: Sequence[Gate], frames: Sequence[Frame], rho: float, without_log: Sequence[Path] = ()) -> list[str]:
    """All reasons why a report does not meet its requirements: every log has to meet each, and every run needs one."""
    missing = [f"{run} has no log; make one with: smoothctl certify {run}" for run in without_log] if gates else []
    return [*missing, *(reason for gate in gates for frame in frames if (reason := check(gate, frame, rho)))]
