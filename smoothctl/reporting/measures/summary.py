"""The figures of one log, and what a command that wrote a log says at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import metrics
from smoothctl.reporting.measures.resolution import undecided

RHO = 0.001
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class ClassSummary:
    """The images of one label."""

    label: int
    name: str
    images: int
    abstained: float | None
    certified: tuple[float, ...]
    acr: float | None


@dataclass(frozen=True)
class Summary:
    """One log in figures; shares are of all its rows. Radii and ACR are in the noise's norm.

    ``certified`` and what goes with it have an entry for each radius. ``accuracy`` counts
    abstentions as wrong (the field's clean accuracy: certified at radius 0); ``smoothed_accuracy``
    asks for the leading class only. ``lower_bernstein`` and ``lower_binomial`` are appendix D of
    Cohen et al. 2019. None stands for what the log does not tell.
    """

    name: str
    kind: str
    path: str
    note: str
    images: int
    planned: int | None
    subset: str
    settings: dict[str, Any]
    guessed: tuple[str, ...]
    method: str
    arch: str
    dataset: str
    lineage: tuple[Any, ...]
    accuracy: float
    accuracy_interval: tuple[float, float] | None
    smoothed_accuracy: float | None
    abstained: float | None
    failed: int
    certified: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    lower_bernstein: tuple[float, ...] | None
    lower_binomial: tuple[float, ...] | None
    undecided: tuple[int, ...]
    acr: float | None
    acr_interval: tuple[float, float] | None
    acr_reason: str | None
    acr_of_constant: float | None
    label_probability: dict[str, float] | None
    classes: tuple[ClassSummary, ...]
    seconds: float | None
    evaluations: float | None

    @property
    def title(self) -> str:
        """The name, with what was done to the log."""
        return f"{self.name} ({self.note})" if self.note else self.name


def summarise(frame: Frame, radii: Sequence[float], rho: float = RHO, full: bool = True) -> Summary:
    """Compute the figures of a log; ``full`` adds what takes time: the bootstrap, votes and classes."""
    certifying = frame.kind == "certify"
    counts = metrics.certified_counts(frame, radii) if certifying else ()
    total, alpha = len(frame), frame.alpha
    right = int(frame.correct.sum())
    bounded = certifying and alpha is not None and alpha <= 0.5 and not frame.projection
    dataset, method, arch = frame.group
    return Summary(
        name=frame.name,
        kind=frame.kind,
        path=str(frame.path),
        note=frame.note,
        images=total,
        planned=frame.planned,
        subset=metrics.subset(frame.idx),
        settings=dict(frame.settings),
        guessed=tuple(sorted(frame.guessed)),
        method=method,
        arch=arch,
        dataset=dataset,
        lineage=tuple(frame.model("lineage") or ()),
        accuracy=right / total,
        accuracy_interval=metrics.interval(right, total) if full else None,
        smoothed_accuracy=metrics.smoothed_accuracy(frame),
        abstained=metrics.abstained(frame),
        failed=int(frame.failed.sum()),
        certified=tuple(count / total for count in counts),
        intervals=metrics.intervals(counts, total) if full else (),
        lower_bernstein=tuple(metrics.bernstein_lower(count, total, alpha, rho) for count in counts)
        if bounded and alpha
        else None,
        lower_binomial=tuple(metrics.binomial_lower(count, total, alpha, rho) for count in counts)
        if bounded and alpha
        else None,
        undecided=undecided(frame, radii) if certifying and not frame.note else tuple(0 for _ in counts),
        acr=metrics.average_certified_radius(frame),
        acr_interval=metrics.acr_interval(frame) if full else None,
        acr_reason=metrics.NO_ACR if certifying and frame.grid is not None else None,
        acr_of_constant=metrics.constant_acr(frame) if certifying and frame.grid is None else None,
        label_probability=_quantiles(frame) if full else None,
        classes=class_summaries(frame, radii) if full else (),
        seconds=float(np.nanmean(frame.seconds)) if not np.isnan(frame.seconds).all() else None,
        evaluations=metrics.evaluations(frame),
    )


def _quantiles(frame: Frame) -> dict[str, float] | None:
    """Mean and quantiles of p_A of the true label over images, from votes."""
    shares = metrics.label_probabilities(frame)
    if shares is None or not len(shares):
        return None
    quantiles = np.quantile(shares, QUANTILES)
    return {
        "mean": float(shares.mean()),
        **{f"q{place:.2f}": float(q) for place, q in zip(QUANTILES, quantiles, strict=True)},
    }


def class_summaries(frame: Frame, radii: Sequence[float]) -> tuple[ClassSummary, ...]:
    """Figures of each label that occurs, failed images apart."""
    found = []
    for label in np.unique(frame.label[~frame.failed]):
        mine = frame.take((frame.label == label) & ~frame.failed)
        name = frame.class_names[label] if 0 <= label < len(frame.class_names) else str(label)
        certified = metrics.certified_accuracy(mine, radii) if frame.kind == "certify" else ()
        found.append(
            ClassSummary(
                int(label), name, len(mine), metrics.abstained(mine), certified,
                metrics.average_certified_radius(mine),
            )
        )  # fmt: skip
    return tuple(found)
