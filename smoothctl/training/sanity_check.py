"""A sanity check of a transfer: certified accuracy of the student beside the teacher's, on a few test images."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from smoothctl.base import console
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.datasets import LabelledImages
from smoothctl.hooks.noises import Noise
from smoothctl.images.datasets import READ_ERRORS, pixels
from smoothctl.smoothing.certify import certify
from smoothctl.smoothing.procedure import resolve
from smoothctl.smoothing.rules import asking
from smoothctl.smoothing.settings import CertifySettings
from smoothctl.training.trainer import Trainer

LIMIT, SELECTION, ALPHA = 2000, 50, 0.001
FRACTION = 0.02
"""Of the expected time of the whole run, what one check may take."""
FIRST_GROUP, LARGEST_GROUP = 1, 64
CONFIDENCE = 0.95

Tell = Callable[[str], None]


@dataclass(frozen=True)
class SanityCheck:
    """At which radius, on how many test images at most, and after how many epochs to check."""

    radius: float
    images: int
    epochs: frozenset[int]

    def run(self, trainer: Trainer, seconds: float, tell: Tell) -> dict[str, Any]:
        """Check the student, and its teacher, for about ``seconds``; say and return what was found.

        ``tell`` is told of progress. An image that cannot be read ends the check, with a warning.
        """
        networks: dict[str, nn.Module] = {"certified_accuracy": trainer.trained}
        if trainer.teacher is not None:
            networks["teacher_certified_accuracy"] = trainer.teacher.classifier
        places = list(self.places(len(trainer.data.heldout)))
        random.Random(0).shuffle(places)  # so that a check that runs out of time has seen images of all classes
        right, done, start, group = dict.fromkeys(networks, 0), 0, time.monotonic(), FIRST_GROUP
        tell(f"sanity check, 0/{len(places)} images")
        while done < len(places) and group:
            chosen = places[done : done + group]
            try:
                for name, network in networks.items():
                    right[name] += self.count_certified(network, trainer, chosen)
            except (SmoothctlError, *READ_ERRORS) as error:
                console.warn(f"the sanity check ended early: {error}")
                break
            done += len(chosen)
            tell(f"sanity check, {done}/{len(places)} images")
            spent = time.monotonic() - start
            group = min(LARGEST_GROUP, 2 * group, math.floor((seconds - spent) * done / max(spent, 1e-9)))
            group = max(0, group)
        if not done:
            return {}
        told = [_describe(right["certified_accuracy"], done)]
        if len(networks) > 1:
            told.append(f"the teacher {_describe(right['teacher_certified_accuracy'], done)}")
        out_of_time = "" if done == len(places) else f" ({FRACTION:.0%} of the expected time allows no more)"
        console.note(f"certified at {self.radius:g} on {done} test images{out_of_time}: {', '.join(told)}")
        found = {name: count / done for name, count in right.items()}
        return {"check_radius": self.radius, "check_images": done, **found}

    def count_certified(self, model: nn.Module, trainer: Trainer, places: Sequence[int]) -> int:
        """How many of these test images are right and certified at the radius, for a trainer's noise."""
        return count_certified(
            model, trainer.data.heldout, places, self.radius, trainer.settings.sigma, trainer.settings.noise
        )

    def places(self, count: int) -> Sequence[int]:
        """Which of so many test images are checked."""
        step = max(1, count // self.images)
        return list(range(0, count, step))[: self.images]


def count_certified(
    model: nn.Module, images: LabelledImages, places: Sequence[int], radius: float, sigma: float, noise: str
) -> int:
    """How many of these images are right and certified at a radius.

    The exact group-sequential test decides most of them after a few hundred noise samples; one that is
    undecided at the limit counts as not certified.
    """
    x = torch.stack([pixels(images, place) for place in places])
    labels = [int(images[place][1]) for place in places]
    certificates = certify(
        model, x, sigma=sigma, noise=noise, n0=SELECTION, n=LIMIT, alpha=ALPHA, indices=places, **asking([radius])
    )
    decided = zip(certificates, labels, strict=True)
    return sum(certificate.predict == label and certificate.radius >= radius for certificate, label in decided)


def _describe(count: int, images: int) -> str:
    """A fraction of images with its interval (Wilson's)."""
    from scipy.stats import binomtest

    interval = binomtest(count, images).proportion_ci(CONFIDENCE, method="wilson")
    low, high = 100 * interval.low, 100 * interval.high
    return f"{100 * count / images:.1f} % ({CONFIDENCE:.0%} interval {low:.0f} to {high:.0f} %)"


def plan_check(radius: float | None, images: int, epochs: int, sigma: float, noise: Noise) -> SanityCheck | None:
    """Check after the first epoch, and again after a tenth of them, at a radius; None: one sigma.

    Raises SmoothctlError without images, and UsageError, before anything is trained, for a radius that so few
    noise samples cannot prove. One sigma may be such a radius: then there is no check.
    """
    if images < 1:
        raise SmoothctlError("a sanity check needs at least one image")
    wanted = sigma if radius is None else radius
    try:
        resolve(CertifySettings(n0=SELECTION, n=LIMIT, alpha=ALPHA), asking([wanted])).begin(noise, sigma)
    except UsageError as error:
        if radius is not None:
            raise UsageError(f"`check_radius={radius:g}`: {error}") from None
        console.note(f"no sanity check: {error}; `check_radius` chooses another radius")
        return None
    return SanityCheck(wanted, images, frozenset({1, max(1, round(epochs / 10))}))
