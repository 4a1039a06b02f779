"""What attacks tell: how often they succeed within and beyond certified radii, and what accuracy is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smoothctl.hooks.noises import ABSTAIN
from smoothctl.records.attacks import AttackedImage, AttackLog, attack_path, read_attack_log
from smoothctl.reporting.frames import Frame


@dataclass(frozen=True)
class Success:
    """Attacks at one multiple of the certified radius: after ``changed`` of them ``predict`` returned another class,
    after ``abstained`` it abstained; the rest of the ``count`` kept their class."""

    multiple: float
    count: int
    changed: int
    abstained: int

    @property
    def rate(self) -> float:
        return self.changed / self.count


def attacks_on(frame: Frame) -> AttackLog | None:
    """The attacks on the images of a certification log, or None if there are none on record."""
    path = attack_path(frame.path)
    log = read_attack_log(path) if frame.kind == "certify" and path.exists() else None
    return log if log is not None and log.images else None


def successes(log: AttackLog) -> list[Success]:
    """How often attacks succeed, by multiples of the certified radius in ascending order."""
    found = []
    for place in np.argsort(log.multiples):
        outcomes = [(image.predictions[place], image.label) for image in log.images]
        changed = sum(predicted not in (ABSTAIN, label) for predicted, label in outcomes)
        abstained = sum(predicted == ABSTAIN for predicted, _ in outcomes)
        found.append(Success(log.multiples[place], len(outcomes), changed, abstained))
    return found


def least_success(image: AttackedImage) -> float:
    """The smallest L2 norm with which an attack changed the class; infinity if none did."""
    tried = zip(image.norms, image.predictions, strict=True)
    return min((norm for norm, predicted in tried if predicted not in (ABSTAIN, image.label)), default=np.inf)


def robust_accuracy(frame: Frame, log: AttackLog, radii: Sequence[float]) -> list[float]:
    """Empirical robust accuracy: the fraction of images certified for their label for which no attack with a norm of
    at most each radius changed the class.

    The attacks that were made bound it from above: with more of them it can only fall.
    """
    least = np.array([least_success(image) for image in log.images])
    return [float((least > radius).sum() / len(frame)) for radius in radii]
