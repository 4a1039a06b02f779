"""An early check of a transfer: certified accuracy of the student beside the teacher's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from smoothctl.base import console
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.base.settings import validated
from smoothctl.hooks.datasets import LabelledImages
from smoothctl.hooks.noises import Noise
from smoothctl.images.datasets import pixels
from smoothctl.smoothing.certify import certify, rule_maker
from smoothctl.smoothing.settings import CertifySettings

LIMIT, SELECTION, ALPHA = 2000, 50, 0.001


@dataclass(frozen=True)
class EarlyCheck:
    """At which radius, on how many held-out images, and after how many epochs to look."""

    radius: float
    images: int
    epochs: frozenset[int]

    def certified_accuracy(self, model: nn.Module, heldout: LabelledImages, sigma: float, noise: str) -> float:
        """Share of evenly spaced held-out images that are right and certified at the radius.

        The exact group-sequential test decides most of them after a few hundred copies; one that is
        undecided at the limit counts as not certified.
        """
        places = self.places(len(heldout))
        x = torch.stack([pixels(heldout, place) for place in places])
        labels = [int(heldout[place][1]) for place in places]
        certificates = certify(
            model, x, sigma=sigma, noise=noise, radii=[self.radius], n0=SELECTION, n=LIMIT, alpha=ALPHA, indices=places
        )
        decided = zip(certificates, labels, strict=True)
        return sum(
            certificate.predict == label and certificate.radius >= self.radius for certificate, label in decided
        ) / len(places)

    def places(self, count: int) -> Sequence[int]:
        """Which of so many held-out images are looked at."""
        step = max(1, count // self.images)
        return list(range(0, count, step))[: self.images]


def plan_check(radius: float | None, images: int, epochs: int, sigma: float, noise: Noise) -> EarlyCheck | None:
    """Look after the first epoch, and again after a tenth of them, at a radius; None: one sigma.

    Raises SmoothctlError without images, and UsageError, before anything is trained, for a radius that so few
    copies cannot prove under the noise. One sigma may be such a radius: then there is no check.
    """
    if images < 1:
        raise SmoothctlError("an early check needs at least one image")
    wanted = sigma if radius is None else radius
    try:
        settings = {"radii": [wanted], "n0": SELECTION, "n": LIMIT, "alpha": ALPHA}
        rule_maker(validated(CertifySettings, settings, prefix=""), noise, sigma)
    except UsageError as error:
        if radius is not None:
            raise UsageError(f"--check-radius {radius:g}: {error}") from None
        console.note(f"no early look: {error}; --check-radius chooses another radius")
        return None
    return EarlyCheck(wanted, images, frozenset({1, max(1, round(epochs / 10))}))
