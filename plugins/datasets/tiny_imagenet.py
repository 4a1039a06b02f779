"""Tiny ImageNet: 64x64 colour images of 200 classes, 100,000 to train and 10,000 to validate (CS231n)."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from smoothctl import (
    Dataset,
    DatasetMissing,
    Draws,
    ImageFiles,
    Recipe,
    SmoothctlError,
    UsageError,
    class_folders,
    fetching,
    find_classes,
    hookimpl,
    random_crop,
    random_flip,
)

URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
MD5 = "90528d7ca1a48142e341f4ef8d21d0de"
FOLDER = "tiny-imagenet-200"
ANNOTATIONS = "val_annotations.txt"


def load(split: str, data: Path | None, download: bool) -> ImageFiles:
    """Read the folder ``tiny-imagenet-200``, as it is unpacked or with ``val`` sorted into class folders."""
    place = data or Path("data")
    root = _find(place)
    if root is None and download:
        fetch(place)
        root = _find(place)
    if root is None:
        raise DatasetMissing("tiny-imagenet", place, f"{FOLDER}/train and val")
    if split == "train":
        return class_folders(root / split)
    names = find_classes(root / "train")
    if not (root / "val" / ANNOTATIONS).is_file():
        return class_folders(root / split, names)
    files, labels = _read_annotations(root / "val" / ANNOTATIONS, {name: place for place, name in enumerate(names)})
    return ImageFiles(root / "val", tuple(f"images/{file}" for file in files), labels, names)


def _read_annotations(path: Path, labels: Mapping[str, int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names of the images and their labels; raises UsageError for a line that is none, with its number."""
    read = []
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            file, tab, rest = line.partition("\t")
            label = rest.partition("\t")[0].strip()
            if not line.strip():
                continue
            if not tab or "/" in file or label not in labels:
                raise ValueError(f"line {number} names no image with one of the classes in train: {line[:60]!r}")
            read.append((file, labels[label]))
    except ValueError as error:
        raise UsageError(f"{path} cannot be read ({error}); unpack {FOLDER}.zip again") from None
    return tuple(file for file, _ in read), tuple(label for _, label in read)


def _find(place: Path) -> Path | None:
    return next((root for root in (place / FOLDER, place) if (root / "train").is_dir()), None)


def fetch(place: Path) -> None:
    """Download, check and unpack the published file into ``place``; the folder appears there whole or not at all.

    Raises SmoothctlError if it cannot be had or is not what was published.
    """
    from torchvision.datasets.utils import download_url

    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place, prefix=".tiny-imagenet-") as scratch:
        archive = Path(scratch) / f"{FOLDER}.zip"
        with fetching("tiny-imagenet", URL, place):
            download_url(URL, scratch, archive.name, MD5)
        try:
            with zipfile.ZipFile(archive) as content:
                content.extractall(scratch)
            (Path(scratch) / FOLDER).rename(place / FOLDER)
        except (OSError, RuntimeError, zipfile.BadZipFile) as error:
            raise SmoothctlError(f"{URL} cannot be unpacked into {place} ({' '.join(str(error).split())})") from None


def augment(x: Tensor, draws: Draws) -> Tensor:
    """Random crop with a margin of 8 pixels, and horizontal flip."""
    return random_flip(random_crop(x, draws, padding=8), draws)


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "tiny-imagenet",
            load,
            shape=(3, 64, 64),
            mean=(0.485, 0.456, 0.406),
            std=(0.229, 0.224, 0.225),
            summary="Tiny ImageNet, 64x64 colour images of 200 classes",
            aliases=("tiny_imagenet", "tinyimagenet"),
            splits=("train", "val"),
            augment=augment,
            like="cifar10",
            recipe=Recipe(
                arch="timm/resnet18", sigma=0.25, epochs=90, batch_size=128, lr=0.1, milestones=(30, 60),
                source="smoothctl's default for tiny-imagenet",
            ),
        )
    ]  # fmt: skip
