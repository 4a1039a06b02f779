"""Images as pixels in [0,1]: opening splits, checking values and shapes, making batches."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smoothctl.api import ArrayImages, Dataset, LabelledImages
from smoothctl.errors import SmoothctlError, UsageError

NPZ_KEYS = {
    "train": (("train_images", "train_labels"), ("x_train", "y_train")),
    "test": (("test_images", "test_labels"), ("x_test", "y_test")),
}
DEFAULT_PLACE = Path("data")


class DatasetMissing(UsageError):
    """The files of a dataset are not where they were looked for."""

    def __init__(self, dataset: str, place: Path, expected: str):
        super().__init__(
            f"{dataset} is not in {place} (expected {expected}); "
            f"say where it is with --data, or fetch it with --download"
        )


def open_split(dataset: Dataset, split: str, data: Path | None = None, download: bool = False) -> LabelledImages:
    """Open one split, from ``data`` if it is an .npz file, else through the dataset's plugin.

    Raises UsageError for an unknown split, missing files, or images that do not fit the dataset.
    """
    if data is not None and data.suffix == ".npz":
        return _open_npz(dataset, split, data)
    if split not in dataset.splits:
        raise UsageError(f"dataset {dataset.name} has the splits {', '.join(dataset.splits)}, not {split!r}")
    images = dataset.load(split, data, download)
    if not len(images):
        raise SmoothctlError(f"the {split} split of {dataset.name} has no images")
    return images


def _open_npz(dataset: Dataset, split: str, path: Path) -> ArrayImages:
    pairs = NPZ_KEYS.get(split, ((f"{split}_images", f"{split}_labels"),))
    try:
        with np.load(path, allow_pickle=False) as arrays:
            present = next((pair for pair in pairs if set(pair) <= set(arrays.files)), None)
            if present is None:
                wanted = " or ".join("/".join(pair) for pair in pairs)
                raise UsageError(f"{path} has no {wanted}; it has {', '.join(arrays.files)}")
            images, labels = arrays[present[0]], arrays[present[1]]
    except OSError as error:
        raise UsageError(f"--data: cannot read {path} ({error})") from None
    except (ValueError, zipfile.BadZipFile) as error:
        raise UsageError(f"--data: {path} is not an .npz file of plain arrays ({error})") from None
    if images.ndim not in (3, 4) or len(images) != len(labels) or not len(images):
        raise UsageError(f"{path}: {present[0]} {images.shape} and {present[1]} {labels.shape} do not go together")
    source = ArrayImages(images, labels.reshape(-1).astype(np.int64))
    shape = tuple(pixels(source, 0).shape)
    if shape != dataset.shape:
        raise UsageError(f"{path} has images of shape {shape}, dataset {dataset.name} has {dataset.shape}")
    classes = len(dataset.class_names)
    if source.labels.min() < 0 or source.labels.max() >= classes:
        raise UsageError(f"{path} has labels up to {source.labels.max()}, dataset {dataset.name} has {classes} classes")
    return source


def pixels(images: LabelledImages, index: int) -> Tensor:
    """One image as float32 [C,H,W] in [0,1].

    Raises SmoothctlError, with the values seen, for an image outside of [0,1].
    """
    return to_pixels(images[index][0], f"image {index}")


def to_pixels(image: Any, name: str = "the image") -> Tensor:
    """Bring a uint8 array [H,W] or [H,W,C], a PIL image, or a float tensor [C,H,W] to float32 [C,H,W]."""
    if isinstance(image, Tensor) and image.dtype != torch.uint8:
        values = image
    else:
        last = torch.as_tensor(np.array(image))
        values = (last[..., None] if last.ndim == 2 else last).movedim(-1, 0)
    scaled = values.float().div(255) if values.dtype == torch.uint8 else values.float()
    low, high = float(scaled.min()), float(scaled.max())
    if not (low >= 0.0 and high <= 1.0):
        raise SmoothctlError(
            f"{name} has values from {low:g} to {high:g}; smoothctl takes uint8, or floats in [0,1] "
            "(sigma and radii are in those units)"
        )
    return scaled.contiguous()


def image_id(images: LabelledImages, index: int) -> str:
    """A name of an image that outlives re-ordering: the source's own, or a hash of its pixels."""
    own = getattr(images, "image_id", None)
    if own is not None:
        return str(own(index))
    return f"sha256:{hashlib.sha256(pixels(images, index).numpy().tobytes()).hexdigest()[:16]}"


def chunks(order: Sequence[int] | Tensor, size: int) -> list[list[int]]:
    """Cut an order of indices into lists of at most ``size``."""
    places = order.tolist() if isinstance(order, Tensor) else list(order)
    return [places[at : at + size] for at in range(0, len(places), size)]


class BatchReader:
    """Reads batches (x [B,C,H,W] in [0,1], y [B], index [B]) of any source on a device.

    Arrays are kept on the device and gathered there; other sources stream through ``workers``
    loader processes (0: in this process).
    """

    def __init__(self, images: LabelledImages, device: torch.device, workers: int = 0):
        self.images, self.device, self.workers = images, device, workers
        self._memory: tuple[Tensor, Tensor] | None = None
        if isinstance(images, ArrayImages):
            self._memory = (_array_pixels(images).to(device), torch.from_numpy(images.labels).to(device))

    def read(self, batches: list[list[int]], seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield the batches of these index lists, in order; ``seed`` makes random sources repeatable."""
        if self._memory is not None:
            yield from (self._gather(batch) for batch in batches)
            return
        loader: Any = torch.utils.data.DataLoader(
            _Items(self.images),
            batch_sampler=batches,
            num_workers=self.workers,
            generator=torch.Generator().manual_seed(seed),
        )
        for x, y, index in loader:
            yield x.to(self.device), y.to(self.device), index.to(self.device)

    def _gather(self, batch: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        assert self._memory is not None
        images, labels = self._memory
        index = torch.tensor(batch, device=self.device)
        x = images[index]
        return (x.float().div(255) if x.dtype == torch.uint8 else x.float()), labels[index], index


def _array_pixels(source: ArrayImages) -> Tensor:
    """All images of an array as a tensor [N,C,H,W], uint8 or float in [0,1]."""
    array = torch.from_numpy(np.ascontiguousarray(source.images))
    array = (array[..., None] if array.ndim == 3 else array).movedim(-1, 1)
    if array.dtype != torch.uint8:
        to_pixels(array.flatten(0, 1), "the array of images")
    return array


class _Items(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """What loader workers read; a class of its own so that it can be sent to them."""

    def __init__(self, images: LabelledImages):
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int, int]:
        image, label = self.images[index]
        return to_pixels(image, f"image {index}"), int(label), index


def fingerprint(images: LabelledImages) -> str:
    """A short text that changes with the number of images and with any of sixteen of them."""
    count = len(images)
    places = sorted({count * at // 16 for at in range(16)})
    digest = hashlib.sha256("\n".join(image_id(images, place) for place in places).encode())
    return f"{count} images, sha256:{digest.hexdigest()[:16]}"
