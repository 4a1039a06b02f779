"""CIFAR-10: 32x32 colour images, 50,000 to train and 10,000 to test (Krizhevsky 2009)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from torch import Tensor

from smoothctl import ArrayImages, Dataset, DatasetMissing, Draws, Recipe, hookimpl, random_crop, random_flip

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def load(split: str, data: Path | None, download: bool) -> ArrayImages:
    """Read torchvision's files below ``data`` (``cifar-10-batches-py``), whose checksums it verifies."""
    from torchvision.datasets import CIFAR10

    place = data or Path("data")
    try:
        source = CIFAR10(str(place), train=split == "train", download=download)
    except RuntimeError:
        raise DatasetMissing("cifar10", place, "cifar-10-batches-py/data_batch_1 and its companions") from None
    return ArrayImages(source.data, np.array(source.targets, dtype=np.int64))


def augment(x: Tensor, draws: Draws) -> Tensor:
    """Random crop with a margin of 4 pixels, and horizontal flip."""
    return random_flip(random_crop(x, draws, padding=4), draws)


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "cifar10",
            load,
            shape=(3, 32, 32),
            class_names=CLASS_NAMES,
            mean=(0.4914, 0.4822, 0.4465),
            std=(0.2023, 0.1994, 0.2010),
            summary="CIFAR-10, 32x32 colour images of ten classes",
            augment=augment,
            recipe=Recipe(
                arch="resnet110", sigma=0.25, epochs=200, batch_size=128, lr=0.1, milestones=(100, 150),
                source="CRT paper (NeurIPS 2022), table 16",
            ),
        )
    ]  # fmt: skip
