"""A few images of the dataset, clean and under each sigma, with what was decided for them.

This is the one part of a report that loads a dataset, and so torch and plugins.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures.comparison import shared_images

COUNT = 5
LARGEST_SIDE = 224


@dataclass(frozen=True)
class Shot:
    """One picture: a PNG as a data address, what it is for those who do not see it, and lines below it."""

    address: str
    alt: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Strip:
    """One image of the dataset: ``shots`` are the clean picture and one for each log."""

    title: str
    shots: tuple[Shot, ...]


def strips(frames: Sequence[Frame], data: Path | None, count: int = COUNT) -> list[Strip]:
    """Draw images that all logs share: from the largest radius to those that abstain.

    Raises SmoothctlError, saying why, where there are no pictures to show.
    """
    chosen = _same_data(frames)
    from smoothctl.hooks.registry import registry
    from smoothctl.images.datasets import fingerprint, open_split, pixels

    settings = chosen[0].settings
    dataset = registry().find("dataset", str(settings["dataset"])).value
    images = open_split(dataset, str(settings["split"]), data, False)
    if settings.get("data") != fingerprint(images):
        raise SmoothctlError("the dataset here is not the one that was certified")
    shared = shared_images(chosen)
    found = []
    for at in _spread(shared[0], count):
        index = int(shared[0].idx[at])
        clean = pixels(images, index).numpy()
        label = _class_name(shared[0], int(shared[0].label[at]))
        shots = [Shot(_png(clean), f"image {index}, clean: {label}", ("clean", f"label {label}"))]
        for frame in shared:
            assert frame.sigma is not None
            noisy = clean + frame.sigma * np.random.default_rng(index).standard_normal(clean.shape)
            lines = (f"sigma {frame.sigma:g}", *_decision(frame, at))
            shots.append(Shot(_png(noisy), f"image {index}, {', '.join(lines)}", lines))
        found.append(Strip(f"image {index}: {label}", tuple(shots)))
    return found


def _same_data(frames: Sequence[Frame]) -> list[Frame]:
    """The logs of the first log's dataset, one for each sigma, ascending."""
    known = [frame for frame in frames if frame.settings.get("dataset") and frame.settings.get("split")]
    if not known:
        raise SmoothctlError("the logs do not say of which dataset they are")
    keys = ("dataset", "split", "data")
    same = [frame for frame in known if all(frame.settings.get(key) == known[0].settings.get(key) for key in keys)]
    by_sigma = {frame.sigma: frame for frame in reversed(same) if frame.sigma is not None}
    if any(frame.settings.get("noise", "gaussian") != "gaussian" for frame in by_sigma.values()):
        raise SmoothctlError("only Gaussian noise can be pictured")
    return [by_sigma[sigma] for sigma in sorted(by_sigma)]


def _spread(frame: Frame, count: int) -> list[int]:
    """Places spread evenly from the largest proved radius to images that are wrong or abstain."""
    order = np.argsort(-frame.proved, kind="stable")
    return [int(order[place]) for place in np.unique(np.linspace(0, len(order) - 1, count).round().astype(int))]


def _decision(frame: Frame, at: int) -> tuple[str, ...]:
    predict = int(frame.predict[at])
    if predict == ABSTAIN:
        leading = f" (leading: {_class_name(frame, int(frame.top[at]))})" if frame.top[at] >= 0 else ""
        return (f"abstains{leading}",)
    verdict = "right" if frame.correct[at] else "wrong"
    return (f"{_class_name(frame, predict)}, {verdict}", f"radius {np.floor(frame.radius[at] * 1000) / 1000:.3f}")


def _class_name(frame: Frame, label: int) -> str:
    return frame.class_names[label] if 0 <= label < len(frame.class_names) else str(label)


def _png(image: np.ndarray) -> str:
    """An image [C,H,W] as a data address; values outside of [0,1] are clipped for display only."""
    from PIL import Image

    values = np.moveaxis(np.clip(image, 0, 1) * 255, 0, -1).round().astype(np.uint8)
    picture = Image.fromarray(values[..., 0] if values.shape[-1] == 1 else values)
    picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
