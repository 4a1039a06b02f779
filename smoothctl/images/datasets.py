"""Images as pixels in [0,1]: opening splits, checking values and shapes, making batches."""

from __future__ import annotations

import dataclasses
import hashlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.datasets import ArrayImages, Dataset, LabelledImages
from smoothctl.images.resizing import Fit, FittedImages

EIGHT_BIT = 255
READ_ERRORS = (OSError, SyntaxError, ValueError, EOFError)


class DatasetMissing(UsageError):
    """The files of a dataset are not where they were looked for; ``fetchable``: --download can get them."""

    def __init__(self, dataset: str, place: Path, expected: str, fetchable: bool = True):
        fetch = ", or fetch it with --download" if fetchable else " (it cannot be fetched from here)"
        super().__init__(
            f"{dataset} is not in {place} (expected {expected}); say where it is with --data{fetch}; "
            "nothing is downloaded unasked"
        )


def open_dataset(
    dataset: Dataset,
    split: str,
    data: Path | None = None,
    download: bool = False,
    shape: tuple[int, int, int] | None = None,
) -> tuple[Dataset, LabelledImages]:
    """Open one split; also the dataset with all that is known once it is open.

    ``shape`` (the model's, or ``--size``) is what PIL images are brought to. Raises UsageError for
    an unknown split, missing files, or images that do not fit the dataset.
    """
    images = open_split(dataset, split, data, download)
    known = describe_dataset(dataset, images)
    wanted = shape or known.shape or _first_shape(images)
    known = dataclasses.replace(known, shape=wanted)
    if isinstance(images, ArrayImages):
        if images.images.ndim > 2 and (own := tuple(pixels(images, 0).shape)) != wanted:
            raise UsageError(f"{dataset.name} has arrays of shape {own}, which are not resized to {wanted}")
        return known, images
    resize = None if dataset.resize is None else round(dataset.resize * min(wanted[1:]) / min(dataset.shape[1:]))
    return known, FittedImages(images, Fit(wanted, resize))


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
        raise UsageError(f"the shape of {dataset.name} images is known once they are opened; give --size")
    return dataset.shape


def _first_shape(images: LabelledImages) -> tuple[int, int, int]:
    """The shape of the first image that can be read; raises SmoothctlError if none can."""
    for index in range(len(images)):
        try:
            channels, height, width = pixels(images, index).shape
        except READ_ERRORS:
            continue
        return channels, height, width
    raise SmoothctlError(f"none of the {len(images)} images can be read")


def open_split(dataset: Dataset, split: str, data: Path | None = None, download: bool = False) -> LabelledImages:
    """Open one split as it is stored, from ``data`` if it is an .npz file, else through the dataset's plugin."""
    if data is not None and data.suffix == ".npz":
        return _check_arrays(dataset, read_npz(data, split), data)
    if data is not None and not data.exists() and not (download or dataset.data_is_name):
        raise UsageError(f"--data: there is nothing at {data}")
    if dataset.splits and split not in dataset.splits:
        raise UsageError(f"dataset {dataset.name} has the splits {', '.join(dataset.splits)}, not {split!r}")
    images = dataset.load(split, data, download)
    if not len(images):
        raise SmoothctlError(f"the {split} split of {dataset.name} has no images")
    return images


def default_split(dataset: Dataset) -> str:
    """The split that is certified unless another is asked for."""
    return "test" if "test" in dataset.splits or not dataset.splits else dataset.splits[-1]


def read_npz(path: Path, split: str) -> ArrayImages:
    """Read a split's images [N,H,W] or [N,H,W,C] and labels [N] from an .npz file of plain arrays.

    They are named SPLIT_images and SPLIT_labels, x_SPLIT and y_SPLIT, or images and labels; class names
    may be in ``class_names``, else they are the numbers. Raises UsageError for anything else.
    """
    pairs = ((f"{split}_images", f"{split}_labels"), (f"x_{split}", f"y_{split}"), ("images", "labels"))
    try:
        with np.load(path, allow_pickle=False) as arrays:
            present = next((pair for pair in pairs if set(pair) <= set(arrays.files)), None)
            if present is None:
                wanted = " or ".join("/".join(pair) for pair in pairs)
                raise UsageError(f"{path} has no {wanted}; it has {', '.join(arrays.files) or 'nothing'}")
            images, labels = arrays[present[0]], arrays[present[1]]
            names = tuple(map(str, arrays["class_names"])) if "class_names" in arrays.files else ()
            last = max((int(arrays[name].max()) for name in arrays.files if _holds_labels(name, arrays)), default=0)
    except OSError as error:
        raise UsageError(f"--data: cannot read {path} ({error})") from None
    except (ValueError, zipfile.BadZipFile) as error:
        reason = str(error).split(", you can load")[0]
        raise UsageError(f"--data: {path} is not an .npz file of plain arrays ({reason})") from None
    if images.ndim not in (3, 4) or len(images) != len(labels) or not len(images):
        raise UsageError(f"{path}: {present[0]} {images.shape} and {present[1]} {labels.shape} do not go together")
    labels = labels.reshape(-1) if labels.shape[1:] == (1,) else labels
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise UsageError(f"{path}: {present[1]} must hold one whole number an image, not {labels.dtype} {labels.shape}")
    names = names or tuple(str(number) for number in range(last + 1))
    return ArrayImages(images, labels.astype(np.int64), names)


def _holds_labels(name: str, arrays: Any) -> bool:
    named = name.endswith("labels") or name.startswith("y_")
    return named and arrays[name].size > 0 and arrays[name].dtype.kind in "iu"


def _check_arrays(dataset: Dataset, source: ArrayImages, path: Path) -> ArrayImages:
    """Arrays that stand for a dataset have its shape and its labels; raises UsageError if not."""
    shape = tuple(pixels(source, 0).shape)
    if dataset.shape and shape != dataset.shape:
        raise UsageError(f"{path} has images of shape {shape}, dataset {dataset.name} has {dataset.shape}")
    classes = len(describe_dataset(dataset, source).class_names)
    if source.labels.min() < 0 or source.labels.max() >= classes:
        found = f"from {source.labels.min()} to {source.labels.max()}"
        raise UsageError(f"{path} has labels {found}, dataset {dataset.name} has {classes} classes")
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


def image_id(images: LabelledImages, index: int) -> str:
    """A name of an image that outlives re-ordering: the source's own, or a hash of its pixels."""
    own = getattr(images, "image_id", None)
    if own is not None:
        return str(own(index))
    return f"sha256:{hashlib.sha256(pixels(images, index).numpy().tobytes()).hexdigest()[:16]}"


def fingerprint(images: LabelledImages) -> str:
    """A short text that changes with the number of images and with any of sixteen of them."""
    count = len(images)
    places = sorted({count * at // 16 for at in range(16)})
    digest = hashlib.sha256("\n".join(image_id(images, place) for place in places).encode())
    return f"{count} images, sha256:{digest.hexdigest()[:16]}"


def label_hash(images: LabelledImages) -> str:
    """A short text that changes with any label of an array. The labels of other images, whose names tell them as
    a rule, would have to be read for it: they give an empty text."""
    if not isinstance(images, ArrayImages):
        return ""
    return hashlib.sha256(images.labels.astype(np.int64).tobytes()).hexdigest()[:16]
