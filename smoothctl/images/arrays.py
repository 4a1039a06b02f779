"""Arrays of images in .npz files, whose headers are checked before anything is read."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smoothctl.base.errors import UsageError
from smoothctl.hooks.datasets import ArrayImages
from smoothctl.images.files import say_once

# An archive may unpack to so many bytes, or to so many times its size, whichever is more.
SMALL_BYTES, TIMES = 64 << 20, 100
MOST_CLASSES = 100_000
CHANNELS = (1, 3, 4)


def read_npz(path: Path, split: str) -> ArrayImages:
    """Read a split's images [N,H,W], [N,H,W,C] or [N,C,H,W] and labels [N] from an .npz file of plain arrays.

    They are named SPLIT_images and SPLIT_labels, x_SPLIT and y_SPLIT, or images and labels; class names
    may be in ``class_names``, else they are the numbers. Raises UsageError for anything else.
    """
    pairs = ((f"{split}_images", f"{split}_labels"), (f"x_{split}", f"y_{split}"), ("images", "labels"))
    try:
        names = _check_headers(path)
        present = next((pair for pair in pairs if set(pair) <= set(names)), None)
        if present is None:
            wanted = " or ".join("/".join(pair) for pair in pairs)
            raise UsageError(f"{path} has no {wanted}; it has {', '.join(names) or 'nothing'}")
        with np.load(path, allow_pickle=False) as arrays:
            images, labels = arrays[present[0]], arrays[present[1]]
            all_labels = {name: arrays[name] for name in names if name.endswith("labels") or name.startswith("y_")}
            class_names = tuple(map(str, arrays["class_names"].ravel())) if "class_names" in names else ()
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"`data`: cannot read {path} ({error})") from None
    except Exception as error:  # what damaged archives raise has no end
        reason = " ".join((str(error) or type(error).__name__).split())[:160]
        raise UsageError(f"`data`: {path} is not an .npz file of plain arrays ({reason})") from None
    images, labels = _check_pair(path, present, images, labels)
    return ArrayImages(images, labels, class_names or _number_classes(path, all_labels))


def _check_headers(path: Path) -> list[str]:
    """The names of the arrays. Raises UsageError or ValueError unless each is as large as its header declares, and
    all are in proportion to the file."""
    with zipfile.ZipFile(path) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        unpacked, size = sum(entry.file_size for entry in entries), path.stat().st_size
        if unpacked > max(SMALL_BYTES, TIMES * size):
            raise UsageError(
                f"`data`: {path} has {size:,} bytes and would unpack to {unpacked:,}; save it uncompressed"
            )
        for entry in entries:
            with archive.open(entry) as handle:
                version = np.lib.format.read_magic(handle)
                read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                if version not in read:
                    raise ValueError(f"{entry.filename} has a header of version {version}")
                shape, _, dtype = read[version](handle)
                if dtype.hasobject:
                    raise ValueError(f"{entry.filename} holds objects")
                declared, held = math.prod(shape) * dtype.itemsize, entry.file_size - handle.tell()
                if declared != held:
                    raise ValueError(
                        f"{entry.filename} declares the shape {shape}, {declared:,} bytes, and has {held:,}"
                    )
    return [entry.filename.removesuffix(".npy") for entry in entries]


def _check_pair(path: Path, names: tuple[str, str], images: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Images as uint8 or float32 and labels as int64 [N]; raises UsageError unless they go together."""
    if images.ndim not in (3, 4) or len(images) != len(np.atleast_1d(labels)) or not images.size:
        raise UsageError(f"{path}: {names[0]} {images.shape} and {names[1]} {labels.shape} do not go together")
    if images.ndim == 4 and images.shape[3] not in CHANNELS and images.shape[1] in CHANNELS:
        say_once(f"{path}: {names[0]} {images.shape} are taken as [N,C,H,W]")
        images = images.transpose(0, 2, 3, 1)
    if images.dtype.kind not in "uif":
        raise UsageError(f"{path}: {names[0]} must be uint8, or floats in [0,1], not {images.dtype}")
    labels = labels.reshape(-1) if labels.shape[1:] == (1,) else labels
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise UsageError(f"{path}: {names[1]} must hold one whole number an image, not {labels.dtype} {labels.shape}")
    kept = images if images.dtype == np.uint8 else images.astype(np.float32, copy=False)
    return kept, labels.astype(np.int64)


def _number_classes(path: Path, labels: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Names for classes without: the numbers up to the largest label of any split."""
    whole = {name: array for name, array in labels.items() if array.dtype.kind in "iu" and array.size}
    for name, array in whole.items():
        if int(array.max()) >= MOST_CLASSES:
            place = int(array.argmax())
            raise UsageError(
                f"{path}: {name} has the label {int(array.max())} at {place}, which stands for more than "
                f"{MOST_CLASSES:,} classes; if there are so many, the file must name them in class_names"
            )
    least = min((int(array.min()) for array in whole.values()), default=0)
    if least > 0:
        say_once(
            f"{path}: no label is below {least}, so classes below it have no images; are labels counted from {least}?"
        )
    return tuple(str(number) for number in range(max((int(array.max()) for array in whole.values()), default=0) + 1))
