"""Requirements on certified accuracy, decided while images are certified: no earlier and no later than possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smoothctl.base.errors import UsageError
from smoothctl.reporting.gates import COMPARE, Gate, parse
from smoothctl.reporting.measures.metrics import binomial_lower
from smoothctl.reporting.measures.summary import RHO
from smoothctl.smoothing.rules import asking, choose_rule
from smoothctl.smoothing.settings import CertifySettings


class Verdict:
    """Whether requirements are met on ``planned`` images, of which it is told one by one, in any order.

    It is final once no outcome of the images to come could change it, so that it is the verdict on all of them.
    """

    def __init__(self, gates: Sequence[Gate], planned: int, alpha: float, rho: float = RHO):
        self.gates, self.planned, self.alpha, self.rho = tuple(gates), planned, alpha, rho
        self.seen = 0
        self._certified = dict.fromkeys(gates, 0)

    def add(self, correct: bool, radius: float) -> None:
        """Count an image: whether its class is right, and its certified radius."""
        self.seen += 1
        for gate in self.gates:
            assert gate.radius is not None
            self._certified[gate] += correct and radius >= gate.radius

    @property
    def met(self) -> bool | None:
        """Whether all requirements are met; None as long as that is open."""
        each = [self._met(gate) for gate in self.gates]
        return False if False in each else None if None in each else True

    @property
    def decided(self) -> bool:
        """Whether the images to come can change nothing."""
        return self.met is not None

    def _met(self, gate: Gate) -> bool | None:
        least = self._certified[gate]
        # Both measures rise with the count, so that the ends decide.
        ends = {self._holds(gate, count) for count in (least, least + self.planned - self.seen)}
        return ends.pop() if len(ends) == 1 else None

    def _holds(self, gate: Gate, count: int) -> bool:
        share = count / self.planned
        if gate.measure == "lcb":
            share = binomial_lower(count, self.planned, self.alpha, self.rho)
        return COMPARE[gate.sign](share, gate.limit)

    def describe(self) -> str:
        """What is known of each requirement, and on how many images."""
        words = {True: "met", False: "not met", None: "open"}
        listed = ", ".join(
            f"{gate.text} is {words[self._met(gate)]} ({self._certified[gate]} certified)" for gate in self.gates
        )
        return f"{listed} after {self.seen} of {self.planned} images"


def read_requirements(texts: Sequence[str]) -> list[Gate]:
    """Requirements that certificates can decide; raises UsageError for others."""
    gates = [parse(text) for text in texts]
    for gate in gates:
        if gate.radius is None:
            raise UsageError(
                f"`require={gate.text}`: certify decides acc@R and lcb@R; for the others, certify, and then: "
                f"smoothctl report --require '{gate.text}'"
            )
        if gate.measure == "lcb" and gate.sign in ("<", "<="):
            raise UsageError(f"`require={gate.text}`: a lower bound that must be small says nothing; use > or >=")
    return gates


def asked_for(
    settings: CertifySettings, options: Mapping[str, Any], gates: Sequence[Gate]
) -> tuple[CertifySettings, Mapping[str, Any]]:
    """Settings, and options of a stopping rule, that ask only what requirements need: their radii, of images whose
    selected class is the label.

    Settings that choose another rule are left as they are. Raises UsageError for radii that lack one of the gates'.
    """
    if not gates:
        return settings, options
    radii = tuple(sorted({gate.radius for gate in gates if gate.radius is not None}))
    if settings.rule is None and not options and settings.bound == "binary":
        options = asking(radii)
    else:
        grid = choose_rule(settings.rule, options)[0].tells.grid
        missing = [radius for radius in radii if grid and radius not in options[grid]]
        if missing:
            raise UsageError(f"`require` asks about the radius {missing[0]:g}, `{grid}` do not; leave `{grid}` out")
    return CertifySettings(**{**settings.given(), "skip_misclassified": True}), options
