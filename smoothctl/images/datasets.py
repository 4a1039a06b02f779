"""Images as pixels in [0,1]: opening splits, checking values and shapes, reading each image once."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.datasets import ArrayImages, Dataset, LabelledImages
from smoothctl.images.arrays import read_npz
from smoothctl.images.resizing import Fit, FittedImages

EIGHT_BIT = 255
READ_ERRORS = (OSError, SyntaxError, ValueError, EOFError)


# So many images, spread over all, are looked at for the size of their kind.
SAMPLED = 64


def open_dataset(
    dataset: Dataset,
    split: str,
    data: Path | None = None,
    download: bool = False,
    shape: tuple[int, int, int] | None = None,
    size: int | None = None,
) -> tuple[Dataset, LabelledImages]:
    """Open one split; also the dataset with all that is known once it is open.

    ``shape`` (the model's), or else ``size`` (its sides), is what PIL images are brought to. Raises UsageError for
    an unknown split, missing files, images that do not fit the dataset, or such of several sizes where nobody says
    which.
    """
    images = open_split(dataset, split, data, download)
    known = describe_dataset(dataset, images)
    wanted = shape or _sided(known.shape, size) or _common_shape(known, images, size)
    known = dataclasses.replace(known, shape=wanted)
    if isinstance(images, ArrayImages):
        if images.images.ndim > 2 and (own := tuple(pixels(images, 0).shape)) != wanted:
            raise UsageError(f"{dataset.name} has arrays of shape {own}, which are not resized to {wanted}")
        return known, images
    resize = None if dataset.resize is None else round(dataset.resize * min(wanted[1:]) / min(dataset.shape[1:]))
    return known, FittedImages(images, Fit(wanted, resize), split)


def describe_dataset(dataset: Dataset, images: LabelledImages | None = None) -> Dataset:
    """A dataset with its class names and shape, as far as they are known: its own, or those of its images."""
    names = dataset.class_names
    if not names and dataset.find_class_names is not None:
        names = dataset.find_class_names()
    names = names or tuple(getattr(images, "class_names", ()))
    if images is not None and not names:
        raise SmoothctlError(f"dataset {dataset.name} states no class names, and neither do its images")
    shape = tuple(images.images.shape[1:]) if isinstance(images, ArrayImages) and not dataset.shape else None
    if shape is not None:
        dataset = dataclasses.replace(dataset, shape=(shape[2] if len(shape) == 3 else 1, shape[0], shape[1]))
    return dataclasses.replace(dataset, class_names=names)


def known_shape(dataset: Dataset) -> tuple[int, int, int]:
    """The shape of an opened dataset's images; raises UsageError if it has not been opened."""
    if not dataset.shape:
        raise UsageError(f"the shape of {dataset.name} images is known once they are opened; give `size`")
    return dataset.shape


def _sided(shape: tuple[int, int, int] | tuple[()], size: int | None) -> tuple[int, int, int] | None:
    if not shape:
        return None
    return shape if size is None else (shape[0], size, size)


def _common_shape(dataset: Dataset, images: LabelledImages, size: int | None) -> tuple[int, int, int]:
    """The shape that images spread over all have in common, or have once they are brought to ``size``.

    Raises SmoothctlError if none can be read, and UsageError if they are of several sizes.
    """
    shapes = []
    for index in _spread(len(images), SAMPLED):
        try:
            shapes.append(tuple(pixels(images, index).shape))
        except READ_ERRORS:
            continue
    if not shapes:
        raise SmoothctlError(f"none of the {len(images)} images can be read")
    channels, sizes = max(shape[0] for shape in shapes), sorted({shape[1:] for shape in shapes})
    if size is not None:
        return channels, size, size
    if len(sizes) > 1:
        seen = ", ".join(f"{height}x{width}" for height, width in sizes[:4])
        raise UsageError(
            f"the images of {dataset.name} are of several sizes ({seen}{', ...' if len(sizes) > 4 else ''}); say to "
            "which they are to be brought: `size`"
        )
    return channels, sizes[0][0], sizes[0][1]


def _spread(count: int, most: int) -> list[int]:
    """At most so many places spread over all."""
    return sorted({count * at // most for at in range(most)})


def open_split(dataset: Dataset, split: str, data: Path | None = None, download: bool = False) -> LabelledImages:
    """Open one split as it is stored, from ``data`` if it is an .npz file, else through the dataset's plugin."""
    if data is not None and data.suffix == ".npz":
        return _check_arrays(dataset, read_npz(data, split), data)
    if data is not None and not data.exists() and not (download or dataset.data_is_name):
        raise UsageError(f"`data`: there is nothing at {data}")
    if dataset.splits and split not in dataset.splits:
        raise UsageError(f"dataset {dataset.name} has the splits {', '.join(dataset.splits)}, not {split!r}")
    images = dataset.load(split, data, download)
    if not len(images):
        raise SmoothctlError(f"the {split} split of {dataset.name} has no images")
    return images


def default_split(dataset: Dataset) -> str:
    """The split that is certified unless another is asked for."""
    return "test" if "test" in dataset.splits or not dataset.splits else dataset.splits[-1]


def _check_arrays(dataset: Dataset, source: ArrayImages, path: Path) -> ArrayImages:
    """Arrays that stand for a dataset have its shape and its labels; raises UsageError if not."""
    shape = tuple(pixels(source, 0).shape)
    if dataset.shape and shape != dataset.shape:
        raise UsageError(
            f"{path} has images of shape {shape}, dataset {dataset.name} has {dataset.shape}; "
            "say which `dataset` it is of"
        )
    classes = len(describe_dataset(dataset, source).class_names)
    if source.labels.min() < 0 or source.labels.max() >= classes:
        found = f"from {source.labels.min()} to {source.labels.max()}"
        raise UsageError(f"{path} has labels {found}, dataset {dataset.name} has {classes} classes")
    return source


@dataclass(frozen=True)
class Reading:
    """An image that was read: its pixels [C,H,W], its label, and a name that outlives re-ordering."""

    index: int
    x: Tensor
    label: int
    name: str


def read(images: LabelledImages, index: int) -> Reading:
    """Read one image, once. Raises one of READ_ERRORS if it is broken, and SmoothctlError for pixels outside [0,1]."""
    image, label = images[index]
    x = to_pixels(image, f"image {index}")
    return Reading(index, x, int(label), image_id(images, index, x))


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


def levels_of(images: LabelledImages) -> int | None:
    """The m for which all pixels are multiples of 1/m: 255 for 8-bit arrays and PIL images, or what the source states.

    None where no grid is known: images in floating point whose source says nothing.
    """
    stated: int | None = getattr(images, "levels", None)
    if stated is not None:
        return stated
    if isinstance(images, ArrayImages):
        return EIGHT_BIT if images.images.dtype == np.uint8 else None
    for index in range(len(images)):
        try:
            image = images[index][0]
        except READ_ERRORS:
            continue
        return EIGHT_BIT if isinstance(image, Image.Image) or str(image.dtype).endswith("uint8") else None
    return None


def image_id(images: LabelledImages, index: int, x: Tensor | None = None) -> str:
    """A name of an image that outlives re-ordering: the source's own, or a hash of its pixels ``x`` (None: read)."""
    own = getattr(images, "image_id", None)
    if own is not None:
        return str(own(index))
    values = pixels(images, index) if x is None else x
    return f"sha256:{hashlib.sha256(values.numpy().tobytes()).hexdigest()[:16]}"


def fingerprint(images: LabelledImages) -> str:
    """A short text that changes with the number of images and with any of sixteen of them."""
    count = len(images)
    digest = hashlib.sha256("\n".join(image_id(images, place) for place in _spread(count, 16)).encode())
    return f"{count} images, sha256:{digest.hexdigest()[:16]}"


def label_hash(images: LabelledImages) -> str:
    """A short text that changes with any label of an array. The labels of other images, whose names tell them as
    a rule, would have to be read for it: they give an empty text."""
    if not isinstance(images, ArrayImages):
        return ""
    return hashlib.sha256(images.labels.astype(np.int64).tobytes()).hexdigest()[:16]
