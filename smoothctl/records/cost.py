"""What training cost: seconds and passes, of a run and of all that came before it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from smoothctl.records.run_directory import MODEL_FILE, RunDirectory

PASSES = ("forward_passes", "backward_passes", "teacher_passes")


@dataclass(frozen=True)
class Cost:
    """Of one training run: epochs, seconds of training, and images that passed through the networks."""

    epochs: int
    seconds: float
    forward_passes: int
    backward_passes: int
    teacher_passes: int


@dataclass(frozen=True)
class Link:
    """One run of a lineage; ``generation`` is 0 without a teacher; ``cost`` is None where nobody recorded it."""

    arch: str
    method: str
    sha256: str
    cost: Cost | None = None
    generation: int = 0

    def as_plain(self) -> dict[str, Any]:
        """As plain data for a file."""
        return asdict(self)


def total(history: Sequence[Mapping[str, Any]]) -> Cost:
    """The cost of the epochs of a run, from their lines."""
    passes = [sum(int(line.get(name, 0)) for line in history) for name in PASSES]
    return Cost(len(history), math.fsum(line["seconds"] for line in history), *passes)


def teachers_of(run: RunDirectory) -> list[Link] | None:
    """The runs that led to a run's teacher, oldest first, the teacher included; None if it is not on record."""
    there = run.read_settings()
    links = None if there is None else there["about"].get("lineage")
    return None if links is None else [Link(**{**link, "cost": _cost(link["cost"])}) for link in links]


def _cost(plain: Mapping[str, Any] | None) -> Cost | None:
    return None if plain is None else Cost(**plain)


def lineage_of(model: Path, named: Sequence[Link]) -> list[Link]:
    """The runs that led to a model file, oldest first, itself the last.

    ``named`` is the lineage that the file itself tells, without costs; those are known to the run
    directory in which the file lies.
    """
    run = RunDirectory(model.parent)
    if model.name != MODEL_FILE or not run.exists:
        return list(named)
    last = named[-1]
    recorded = teachers_of(run)
    older = list(named[:-1]) if recorded is None else recorded
    return [*older, replace(last, cost=total(run.read_history()), generation=generation_after(older))]


def generation_after(teachers: Iterable[Link]) -> int:
    """The generation of a run that these led to."""
    return 1 + max((link.generation for link in teachers), default=-1)


def union(lineages: Iterable[Sequence[Link]]) -> list[Link]:
    """Several lineages as one, each run once."""
    unique: dict[str, Link] = {}
    for lineage in lineages:
        for link in lineage:
            unique.setdefault(link.sha256, link)
    return list(unique.values())


def seconds(links: Iterable[Link]) -> float | None:
    """Seconds of several runs together, or None if one is not on record."""
    costs = [link.cost for link in links]
    return None if None in costs else math.fsum(cost.seconds for cost in costs if cost is not None)
