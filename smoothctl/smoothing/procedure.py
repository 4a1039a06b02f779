"""How the images of a job are certified: the stopping rule that was asked for, with nothing left open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import Settings
from smoothctl.base.streams import Stream
from smoothctl.hooks.defaults import RULE
from smoothctl.hooks.noises import Noise, stretch
from smoothctl.hooks.rules import Case, Certificate, Rule, StoppingRule, without_estimate
from smoothctl.smoothing.arithmetic import Arithmetic, in_norm, proving
from smoothctl.smoothing.bounds import least_n_to_certify
from smoothctl.smoothing.enumeration import Enumeration, certify_all
from smoothctl.smoothing.radius_bounds import BOUNDS
from smoothctl.smoothing.rules import choose_rule
from smoothctl.smoothing.settings import CertifySettings

NO_LABEL = -1
SURE = math.nextafter(1.0, 0.0)
"""A p_A above which there is hardly any."""
RuleMaker = Callable[[int], Rule[Certificate]]
"""From an image's label (which only ``skip_misclassified`` looks at) to a fresh rule."""


@dataclass(frozen=True)
class Procedure:
    """A stopping rule with its options, and how sure it is to be; see :class:`CertifySettings` for the fields."""

    rule: StoppingRule
    options: Settings
    n0: int
    n: int
    alpha: float
    bound: str
    skip_misclassified: bool
    norm: str | None = None
    certifies: ClassVar[bool] = True

    @property
    def most_samples(self) -> int:
        """Forward passes that one image may take at most."""
        return self.n0 + self.rule.pilot + self.n

    @property
    def likely_samples(self) -> int:
        """Forward passes that an image takes on average, roughly: stopping rules save most of them."""
        return self.n0 + self.n // self.rule.saving

    @property
    def fixed_n(self) -> bool:
        """Whether every image takes the same number of forward passes."""
        return self.rule.tells.n_from == "settings"

    def record(self) -> dict[str, Any]:
        """What a log's settings say of the rule."""
        return {"rule": self.rule.name, "n": self.n, **self.options.model_dump(mode="json")}

    def about(self) -> dict[str, Any]:
        """What a log says besides, so that it can be read where the rule is not installed."""
        return {"tells": asdict(self.rule.tells)}

    def rules(self, arithmetic: Arithmetic, dimension: int) -> RuleMaker:
        """Rules whose certificates hold in an arithmetic, for images of ``dimension`` pixels.

        Raises UsageError for noise that can prove no radius above 0.
        """
        if arithmetic.values:
            whole = self.over(arithmetic, dimension)
            return lambda label: whole.rule()
        distance, noise, sigma = arithmetic.distance(dimension), arithmetic.noise, arithmetic.sigma
        make = self.begin(noise, sigma, distance, dimension)
        if noise.radius(SURE, sigma) <= 0:
            raise UsageError(f"{noise.name} noise of sigma={sigma:g} proves no radius above 0; give a larger sigma")
        return lambda label: stating(make(label), distance, arithmetic.name)

    def over(self, arithmetic: Arithmetic, dimension: int) -> Enumeration:
        """The procedure for a noise of which every value is evaluated, so that n and alpha play no part.

        Raises UsageError for a stopping rule that was chosen, since there is nothing to stop.
        """
        noise, count = arithmetic.noise, arithmetic.values
        if self.rule.name != RULE or self.skip_misclassified:
            chosen = "skip_misclassified" if self.skip_misclassified else f"the stopping rule {self.rule.name}"
            raise UsageError(f"all {count} values of {noise.name} noise are evaluated, so leave out {chosen}")
        divisor = stretch(noise.norm, self.norm, dimension) if self.norm not in (None, noise.norm) else 1.0

        def radius(first: int, second: int) -> float:
            proved = arithmetic.radius(first, second)
            return proved if divisor == 1 else math.nextafter(proved / divisor, -math.inf)

        return Enumeration(count, True, lambda: certify_all(count, radius, arithmetic.name), self.norm)

    def begin(self, noise: Noise, sigma: float, distance: float = 0.0, dimension: int = 1) -> RuleMaker:
        """Rules for a noise; raises UsageError if it cannot serve them.

        ``distance`` bounds the total variation between the noise that is drawn and its law; ``dimension``: values of an
        image, for radii in another norm than the noise's.
        """
        if self.bound == "multi" and noise.radius_pair is None:
            raise UsageError(f"bound multi: noise {noise.name} has no radius for a pair of bounds")
        proven = in_norm(proving(noise, distance), self.norm, dimension)
        fresh = self.rule.plan(
            Case(
                self.n0, self.n, self.alpha, noise, sigma, lambda alpha: BOUNDS[self.bound](proven, sigma, alpha),
                lambda p: proven.radius(p, sigma), self.options,
            )
        )  # fmt: skip
        if self.skip_misclassified:
            return lambda label: skipping_misclassified(fresh(), label)
        return lambda label: fresh()


def resolve(settings: CertifySettings, given: Mapping[str, Any]) -> Procedure:
    """The procedure that settings and the options of rules ask for.

    Raises UsageError for what cannot go together, and an n that can never certify.
    """
    rule, options = choose_rule(settings.rule, {name: value for name, value in given.items() if value is not None})
    n, least = settings.n or rule.default_n, least_n_to_certify(settings.alpha)
    if n < least:
        raise UsageError(f"n={n} can never certify at alpha={settings.alpha:g}; certify needs n>={least}")
    if settings.bound not in rule.bounds:
        raise UsageError(f"bound={settings.bound} does not go with the stopping rule {rule.name}")
    sure = settings.alpha, settings.bound, settings.skip_misclassified
    return Procedure(rule, options, settings.n0, n, *sure, settings.norm)


def stating(rule: Rule[Certificate], distance: float, arithmetic: str) -> Rule[Certificate]:
    """Run a rule, and let its certificate say what holds: p_lower less the distance of the noise from its law."""
    certificate = yield from rule
    p_lower = certificate.p_lower
    if distance:
        p_lower = max(0.0, math.nextafter(p_lower - distance, -math.inf))
    return replace(certificate, p_lower=p_lower, arithmetic=arithmetic)


def skipping_misclassified(rule: Rule[Certificate], label: int) -> Rule[Certificate]:
    """Run a rule, but stop after selection if the selected class is not the label.

    For evaluation only: such an image can never count as certified correctly, so certified
    accuracy and ACR are unchanged, but its row proves nothing.
    """
    request = next(rule)
    while True:
        votes = yield request
        selecting = request.stream is Stream.SELECT
        certificate: Certificate | None = None
        try:
            request = rule.send(votes)
        except StopIteration as stop:
            certificate = stop.value
        if selecting and (certificate or request.stream is not Stream.SELECT):
            top = int(votes.argmax())
            if top != label:
                rule.close()
                return without_estimate(top, votes, "misclassified")
        if certificate:
            return certificate
