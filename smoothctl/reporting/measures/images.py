"""Image by image: what is not certified, and what flips from one log to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smoothctl.hooks.noises import ABSTAIN
from smoothctl.reporting.frames import Frame


@dataclass(frozen=True)
class Undecided:
    """An image, its label, and what each log decided; ``flips`` if some logs certify it and others do not."""

    idx: int
    label: str
    decisions: tuple[str, ...]
    flips: bool


def not_certified(frames: Sequence[Frame]) -> list[Undecided]:
    """The images that some log does not certify for their label, those that flip first, each by its index."""
    places = [{int(idx): at for at, idx in enumerate(frame.idx)} for frame in frames]
    found = []
    for idx in np.unique(np.concatenate([frame.idx[~frame.correct] for frame in frames])).tolist():
        rows = [(frame, there.get(idx)) for frame, there in zip(frames, places, strict=True)]
        certified = {bool(frame.correct[at]) for frame, at in rows if at is not None}
        first, at = next((frame, at) for frame, at in rows if at is not None)
        decisions = tuple("-" if at is None else decision(frame, at) for frame, at in rows)
        found.append(Undecided(idx, class_name(first, int(first.label[at])), decisions, len(certified) > 1))
    return sorted(found, key=lambda image: (not image.flips, image.idx))


def decision(frame: Frame, at: int) -> str:
    """What a log decided for a row: the class and its radius, an abstention, or why the image failed."""
    if frame.failed[at]:
        return "failed"
    predict = int(frame.predict[at])
    if predict == ABSTAIN:
        leading = f" (leading: {class_name(frame, int(frame.top[at]))})" if frame.top[at] >= 0 else ""
        return f"abstains{leading}"
    name = class_name(frame, predict)
    if frame.kind == "predict":
        return name
    return f"{name}, radius {np.floor(frame.radius[at] * 1000) / 1000:.3f}"


def class_name(frame: Frame, label: int) -> str:
    """The name of a class, or its number."""
    return frame.class_names[label] if 0 <= label < len(frame.class_names) else str(label)
