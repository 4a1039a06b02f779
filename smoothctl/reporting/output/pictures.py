"""A few images of the dataset, clean and under each sigma, with what was decided for them.

This is the one part of a report that loads a dataset, and so torch and plugins.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.datasets import LabelledImages
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures.comparison import shared_images
from smoothctl.reporting.measures.images import class_name, decision
from smoothctl.reporting.noises import noise_of

COUNT = 5
LARGEST_SIDE = 224


@dataclass(frozen=True)
class Shot:
    """One picture: a PNG as a data address, what it is for those who do not see it, and lines below it."""

    address: str
    alt: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """The dataset of logs that name none."""

    dataset: str
    split: str | None = None


@dataclass(frozen=True)
class Strip:
    """One image of the dataset: ``shots`` are the clean picture and one for each log."""

    title: str
    shots: tuple[Shot, ...]


def strips(frames: Sequence[Frame], data: Path | None, source: Source | None = None, count: int = COUNT) -> list[Strip]:
    """Draw images that all logs share: the smallest radius that is certified, one that is not, and others between.

    ``source`` names the dataset of logs that name none. Raises SmoothctlError, saying why, where there are no
    pictures to show.
    """
    from smoothctl.hooks.registry import registry
    from smoothctl.images.datasets import default_split, fingerprint, open_split, pixels

    chosen, source = _same_data(frames, source)
    dataset = registry().find("dataset", source.dataset).value
    images = open_split(dataset, source.split or default_split(dataset), data, False)
    stated = chosen[0].settings.get("data")
    if stated is not None and stated != fingerprint(images):
        raise SmoothctlError("the dataset here is not the one that was certified")
    shared = shared_images(chosen)
    if stated is None:
        _require_labels(shared[0], images)
    found = []
    for at, why in _telling(shared[0], count):
        index = int(shared[0].idx[at])
        clean = pixels(images, index)
        label = class_name(shared[0], int(shared[0].label[at]))
        shots = [Shot(_png(clean.numpy()), f"image {index}, clean: {label}", ("clean", f"label {label}"))]
        for frame in shared:
            sigma = "sigma not known" if frame.sigma is None else f"sigma {frame.sigma:g}"
            lines = (sigma, decision(frame, at), "right" if frame.correct[at] else "not certified")
            shots.append(Shot(_png(_noisy(frame, index, clean)), f"image {index}, {', '.join(lines)}", lines))
        found.append(Strip(f"image {index}: {label}{f' ({why})' if why else ''}", tuple(shots)))
    return found


def _same_data(frames: Sequence[Frame], given: Source | None) -> tuple[list[Frame], Source]:
    """The logs of one dataset, one for each sigma, ascending (not known: last), and which dataset that is."""
    known = [frame for frame in frames if frame.settings.get("dataset")]
    if known:
        first = known[0].settings
        source = Source(str(first["dataset"]), first.get("split"))
        keys = ("dataset", "split", "data", "norm")
        same = [frame for frame in known if all(frame.settings.get(key) == first.get(key) for key in keys)]
    elif given is not None:
        source, same = given, list(frames)
    else:
        raise SmoothctlError("the logs do not say of which dataset they are; `dataset` names it")
    by_sigma = {math.inf if frame.sigma is None else frame.sigma: frame for frame in reversed(same)}
    return [by_sigma[sigma] for sigma in sorted(by_sigma)], source


def _noisy(frame: Frame, index: int, clean: Tensor) -> np.ndarray:
    """An image [C,H,W] under one draw of a log's noise; others' logs, which name none, are of Gaussian noise.

    Without noise where the log's sigma is not known.
    """
    from smoothctl.base.draws import Draws
    from smoothctl.base.streams import Stream

    noise, sigma = noise_of(frame), frame.sigma
    if sigma is None:
        return np.asarray(clean.numpy())
    draws = Draws(0, index, Stream.EVALUATE)
    shape = (1, *clean.shape)
    if noise is None:
        noisy = clean + draws.normal(shape) * sigma
    else:
        noisy = noise.noisy(clean, noise.sample(shape, sigma, draws), sigma)
    return np.asarray(noisy[0].numpy())


def _require_labels(frame: Frame, images: LabelledImages) -> None:
    """Raise SmoothctlError unless the dataset has the labels that a log states."""
    for idx, label, failed in zip(frame.idx.tolist(), frame.label.tolist(), frame.failed.tolist(), strict=True):
        if idx >= len(images):
            raise SmoothctlError(f"the dataset has {len(images)} images, the log one with idx {idx}")
        if not failed and (there := int(images[idx][1])) != label:
            raise SmoothctlError(f"image {idx} has label {there} in the dataset and {label} in the log")


def _telling(frame: Frame, count: int) -> list[tuple[int, str]]:
    """Places of images that tell most, and why: the limits of what is certified, and others spread between."""
    order = np.argsort(-frame.proved, kind="stable")
    certified = int(np.sum(frame.proved > 0))
    places = {}
    if certified:
        places[int(order[0])] = "largest certified radius"
        places[int(order[certified - 1])] = "smallest certified radius"
    if certified < len(order):
        places[int(order[certified])] = "not certified"
    for place in np.linspace(0, len(order) - 1, count).round().astype(int):
        if len(places) < count:
            places.setdefault(int(order[place]), "")
    rank = {int(at): position for position, at in enumerate(order)}
    return sorted(places.items(), key=lambda item: rank[item[0]])


def _png(image: np.ndarray) -> str:
    """An image [C,H,W] as a data address; values outside of [0,1] are clipped for display only."""
    from PIL import Image

    values = np.moveaxis(np.clip(image, 0, 1) * 255, 0, -1).round().astype(np.uint8)
    picture = Image.fromarray(values[..., 0] if values.shape[-1] == 1 else values)
    picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
