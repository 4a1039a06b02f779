"""What the field computes from logs. Every row counts in every denominator: abstentions, wrong
classes and failed images are images that are not certified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from smoothctl.api import ABSTAIN
from smoothctl.records import Log, Row

MANY_COLUMNS = 10


@dataclass(frozen=True)
class Summary:
    """One log in figures; shares are of all its rows. Radii and ACR are in the noise's norm."""

    name: str
    images: int
    subset: str
    abstained: float
    failed: int
    accuracy: float
    certified: tuple[float, ...]
    acr: float | None
    seconds: float | None
    settings: dict[str, Any]
    planned: int | None


def certified_accuracy(rows: Sequence[Row], radii: Sequence[float]) -> tuple[float, ...]:
    """Share of rows whose class is right and whose radius is at least r (Cohen et al. 2019, section 4)."""
    proved = np.array([_proved(row) for row in rows])
    return tuple(float(np.mean(proved >= radius)) for radius in radii)


def average_certified_radius(rows: Sequence[Row]) -> float:
    """ACR (Zhai et al. 2020): the mean of radius * correct over all rows."""
    return float(np.mean([max(_proved(row), 0.0) for row in rows]))


def _proved(row: Row) -> float:
    """The radius that counts for the label: below zero if none does, since 0 is a radius too."""
    return row.radius if row.correct and row.radius is not None else -1.0


def subset(rows: Sequence[Row]) -> str:
    """Which images a log holds, as ``0..9980 step 20``."""
    places = [row.idx for row in rows]
    steps = {after - before for before, after in pairwise(places)}
    if not steps:
        return str(places[0])
    step = f"step {steps.pop()}" if len(steps) == 1 else "irregular"
    return f"{places[0]}..{places[-1]} {step}"


def default_radii(logs: Iterable[Log]) -> tuple[float, ...]:
    """0, 0.25, ... up to the largest radius that any log certifies (0.5 apart if these are many)."""
    largest = max((row.radius or 0.0 for log in logs for row in log.rows), default=0.0)
    step = 0.25 if largest / 0.25 <= MANY_COLUMNS else 0.5
    return tuple(step * place for place in range(int(largest / step) + 1))


def summarise(log: Log, name: str, radii: Sequence[float]) -> Summary:
    """Compute all figures of a log."""
    rows = log.rows
    certifying = log.kind == "certify"
    seconds = [row.seconds for row in rows if row.seconds is not None]
    return Summary(
        name=name,
        images=len(rows),
        subset=subset(rows),
        abstained=sum(row.predict == ABSTAIN and not row.failed for row in rows) / len(rows),
        failed=sum(row.failed for row in rows),
        accuracy=sum(row.correct for row in rows) / len(rows),
        certified=certified_accuracy(rows, radii) if certifying else (),
        acr=average_certified_radius(rows) if certifying else None,
        seconds=float(np.mean(seconds)) if seconds else None,
        settings=dict(log.settings or {}),
        planned=log.planned,
    )
