"""Accuracy of a base classifier under noise, and whether it is more than always answering one class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NoisyAccuracy:
    """Fraction of ``images`` that are right with one noise sample each; ``chance``: the share of the largest class."""

    accuracy: float
    chance: float
    images: int

    @property
    def is_chance(self) -> bool:
        """Whether nothing, or hardly anything, was learnt."""
        return at_chance(self.accuracy, self.chance)

    def as_line(self) -> dict[str, float]:
        """What an epoch's line of the log holds of it."""
        return {"heldout_accuracy": self.accuracy, "chance_accuracy": self.chance}


def at_chance(accuracy: float, chance: float) -> bool:
    """Whether an accuracy is hardly above what always answering the largest class gives.

    The margin is half of that for many classes, five points for few, and less where one class is nearly all.
    """
    return accuracy <= chance + min(chance / 2, 0.05, (1 - chance) / 4)


def run_is_at_chance(line: Mapping[str, Any]) -> bool:
    """Whether an epoch's line of the log says so; older logs do not tell."""
    accuracy, chance = line.get("heldout_accuracy"), line.get("chance_accuracy")
    return isinstance(accuracy, float) and isinstance(chance, float) and at_chance(accuracy, chance)
