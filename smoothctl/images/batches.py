"""Reading images and labels in batches, from memory or through loader processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smoothctl.base.draws import Draws
from smoothctl.base.errors import SmoothctlError
from smoothctl.base.streams import Stream
from smoothctl.hooks.datasets import ArrayImages, LabelledImages
from smoothctl.images.datasets import READ_ERRORS, to_pixels
from smoothctl.images.resizing import FittedImages


def chunks(order: Sequence[int] | Tensor, size: int) -> list[list[int]]:
    """Cut an order of indices into lists of at most ``size``."""
    places = order.tolist() if isinstance(order, Tensor) else list(order)
    return [places[at : at + size] for at in range(0, len(places), size)]


class BatchReader:
    """Reads batches (x [B,C,H,W] in [0,1], y [B], index [B]) of any source on a device.

    Arrays are kept on the device and gathered there; other sources stream through ``workers``
    loader processes (0: in this process). Labels that are none of ``classes`` are a SmoothctlError, in arrays at
    once, in others when they are met.
    """

    def __init__(self, images: LabelledImages, device: torch.device, workers: int = 0, classes: int | None = None):
        self.images, self.device, self.workers, self.classes = images, device, workers, classes
        self._memory: tuple[Tensor, Tensor] | None = None
        if isinstance(images, ArrayImages):
            labels = _array_labels(images, classes)
            self._memory = (_array_pixels(images).to(device), torch.from_numpy(labels).to(device))

    def read(self, batches: list[list[int]], seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield the batches of these index lists, in order; ``seed`` makes random sources repeatable."""
        if self._memory is not None:
            yield from (self._gather(batch) for batch in batches)
            return
        loader: Any = torch.utils.data.DataLoader(
            _Items(self.images, self.classes, seed),
            batch_sampler=batches,
            num_workers=self.workers,
            generator=torch.Generator().manual_seed(seed),
        )
        try:
            for x, y, index in loader:
                yield x.to(self.device), y.to(self.device), index.to(self.device)
        except SmoothctlError as error:
            # A worker process sends its whole traceback as the message.
            raise SmoothctlError(str(error).strip().splitlines()[-1].split("SmoothctlError: ")[-1]) from None

    def _gather(self, batch: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        assert self._memory is not None
        images, labels = self._memory
        index = torch.tensor(batch, device=self.device)
        x = images[index]
        return (x.float().div(255) if x.dtype == torch.uint8 else x.float()), labels[index], index


def _array_labels(source: ArrayImages, classes: int | None) -> np.ndarray:
    """All labels [N] of an array as int64; raises SmoothctlError unless each image has one of the classes."""
    labels = source.labels
    if labels.shape != (len(source.images),) or labels.dtype.kind not in "iu":
        raise SmoothctlError(
            f"labels must be one whole number an image: there are {len(source.images)} images and labels "
            f"{labels.dtype} {labels.shape}"
        )
    if classes is not None and not 0 <= labels.min() <= labels.max() < classes:
        place = int(np.argmax((labels < 0) | (labels >= classes)))
        raise SmoothctlError(_wrong_label(place, labels[place], classes))
    return labels.astype(np.int64)


def _wrong_label(place: int, label: int, classes: int) -> str:
    return f"image {place} has the label {label}, but there are {classes} classes, from 0 to {classes - 1}"


def _array_pixels(source: ArrayImages) -> Tensor:
    """All images of an array as a tensor [N,C,H,W], uint8 or float in [0,1]."""
    array = torch.from_numpy(np.ascontiguousarray(source.images))
    array = (array[..., None] if array.ndim == 3 else array).movedim(-1, 1)
    if array.dtype != torch.uint8:
        to_pixels(array.flatten(0, 1), "the array of images")
    return array


class _Items(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """What loader workers read; a class of its own so that it can be sent to them."""

    def __init__(self, images: LabelledImages, classes: int | None = None, seed: int = 0):
        self.images, self.classes, self.seed = images, classes, seed

    def __len__(self) -> int:
        return len(self.images)

    def _read(self, index: int) -> tuple[Any, int]:
        """An image, cropped at random where its source does that, whichever worker reads it."""
        if isinstance(self.images, FittedImages) and self.images.crop is not None:
            return self.images.draw(index, Draws(self.seed, index, Stream.TRAIN_CROP))
        return self.images[index]

    def __getitem__(self, index: int) -> tuple[Tensor, int, int]:
        try:
            image, label = self._read(index)
        except READ_ERRORS as error:
            where = f" of the {split} split" if (split := getattr(self.images, "split", "")) else ""
            raise SmoothctlError(f"image {index}{where} cannot be read ({error}); mend it or take it away") from None
        if self.classes is not None and not 0 <= int(label) < self.classes:
            raise SmoothctlError(_wrong_label(index, int(label), self.classes))
        x = to_pixels(image, f"image {index}")
        if isinstance(self.images, FittedImages) and tuple(x.shape) != self.images.fit.shape:
            raise SmoothctlError(
                f"image {index} has shape {tuple(x.shape)}, others {self.images.fit.shape}; only PIL images are resized"
            )
        return x, int(label), index
