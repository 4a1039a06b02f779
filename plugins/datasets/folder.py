"""Any tree of images: ``--dataset folder --data DIR``."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from smoothctl import Dataset, DatasetMissing, Draws, ImageFiles, UsageError, class_folders, hookimpl, random_flip

SPLITS = {"train": ("train", "training"), "test": ("test", "val", "valid", "validation")}


def load(split: str, data: Path | None, download: bool) -> ImageFiles:
    """Read DIR/SPLIT/CLASS/...; where DIR has no folder for any split, DIR/CLASS/... is every split."""
    if data is None:
        raise UsageError("dataset folder needs --data DIR")
    if not data.is_dir():
        raise DatasetMissing("folder", data, "a folder for each class", fetchable=False)
    named = [data / name for name in SPLITS[split] if (data / name).is_dir()]
    if not named and any((data / name).is_dir() for names in SPLITS.values() for name in names):
        raise DatasetMissing("folder", data, f"a folder {' or '.join(SPLITS[split])}", fetchable=False)
    place = named[0] if named else data
    images = class_folders(place)
    if not images.paths:
        raise DatasetMissing("folder", place, "a folder of images for each class", fetchable=False)
    return images


def augment(x: Tensor, draws: Draws) -> Tensor:
    """Horizontal flip."""
    return random_flip(x, draws)


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "folder",
            load,
            summary="a tree of images, DIR/train/CLASS/..., DIR/test/CLASS/... or DIR/CLASS/...",
            augment=augment,
        )
    ]
