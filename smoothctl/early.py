"""An early check of a transfer: certified accuracy of the student beside the teacher's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from smoothctl.api import LabelledImages
from smoothctl.certification import certify
from smoothctl.data import pixels
from smoothctl.errors import SmoothctlError

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
        places = self._places(len(heldout))
        x = torch.stack([pixels(heldout, place) for place in places])
        labels = [int(heldout[place][1]) for place in places]
        certificates = certify(
            model, x, sigma=sigma, noise=noise, radii=[self.radius], n0=SELECTION, n=LIMIT, alpha=ALPHA, indices=places
        )
        decided = zip(certificates, labels, strict=True)
        return sum(
            certificate.predict == label and certificate.radius >= self.radius for certificate, label in decided
        ) / len(places)

    def _places(self, count: int) -> Sequence[int]:
        step = max(1, count // self.images)
        return list(range(0, count, step))[: self.images]


def plan_check(radius: float, images: int, epochs: int) -> EarlyCheck:
    """Look after the first epoch, and again after a tenth of them; raises SmoothctlError without images."""
    if images < 1:
        raise SmoothctlError("an early check needs at least one image")
    return EarlyCheck(radius, images, frozenset({1, max(1, round(epochs / 10))}))
