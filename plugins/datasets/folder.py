"""Any tree of images: ``--dataset folder --data DIR``."""

from __future__ import annotations

import hashlib
from pathlib import Path

from torch import Tensor

from smoothctl import (
    Dataset,
    DatasetMissing,
    Draws,
    ImageFiles,
    UsageError,
    class_folders,
    find_classes,
    hookimpl,
    random_flip,
    say_once,
)

SPLITS = {"train": ("train", "training"), "test": ("test", "val", "valid", "validation"), "all": ()}
SEED, ONE_IN = 0, 5


def load(split: str, data: Path | None, download: bool) -> ImageFiles:
    """Read DIR/SPLIT/CLASS/...; the classes are those of the training images, by name, where there are some.

    Of DIR/CLASS/..., a fifth of each class is the test split.
    """
    if data is None:
        raise UsageError("dataset folder needs `data=DIR`")
    if not data.is_dir():
        raise DatasetMissing("folder", data, "a folder for each class", fetchable=False)
    places = {name: place for name, names in SPLITS.items() if (place := _find(data, names)) is not None}
    if not places:
        return _part(_read(data, None), split)
    if split not in places:
        words = " or ".join(SPLITS[split]) or "no splits, for `split=all`"
        raise DatasetMissing("folder", data, f"a folder {words}", fetchable=False)
    names = find_classes(places["train"]) if "train" in places and split != "train" else None
    return _read(places[split], names)


def _find(data: Path, names: tuple[str, ...]) -> Path | None:
    return next((data / name for name in names if (data / name).is_dir()), None)


def _read(place: Path, class_names: tuple[str, ...] | None) -> ImageFiles:
    images = class_folders(place, class_names)
    if not images.paths:
        raise DatasetMissing("folder", place, "a folder of images for each class", fetchable=False)
    return images


def _part(images: ImageFiles, split: str) -> ImageFiles:
    """A split of a tree without splits: which images are for the test depends on the seed and their paths alone."""
    if split == "all":
        return images
    by_class: dict[int, list[int]] = {}
    for index, label in enumerate(images.labels):
        by_class.setdefault(label, []).append(index)
    test: set[int] = set()
    for own in by_class.values():
        test |= set(sorted(own, key=lambda index: _draw(images.paths[index]))[: _test_images(len(own))])
    if not test:
        say_once(
            f"{images.root} has no splits and too few images to make some: train and test are the same images, so that "
            "accuracy on them says nothing of others"
        )
        return images
    how = f"one in {ONE_IN} of each class is for the test, by seed {SEED} and path"
    say_once(f"{images.root} has no folders train and test: {how}; `split=all` takes every image")
    return images.take((at for at in range(len(images)) if (at in test) == (split == "test")), how)


def _test_images(count: int) -> int:
    return max(1, count // ONE_IN) if count > 1 else 0


def _draw(path: str) -> str:
    return hashlib.sha256(f"{SEED}/{path}".encode()).hexdigest()


def augment(x: Tensor, draws: Draws) -> Tensor:
    """Horizontal flip."""
    return random_flip(x, draws)


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "folder",
            load,
            summary="a tree of images, DIR/train/CLASS/..., DIR/test/CLASS/..., or DIR/CLASS/..., split by a seed",
            splits=("train", "test", "all"),
            augment=augment,
        )
    ]
