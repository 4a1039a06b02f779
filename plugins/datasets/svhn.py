"""SVHN: 32x32 colour house numbers, 73,257 to train and 26,032 to test (Netzer et al. 2011)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from torch import Tensor

from smoothctl import ArrayImages, Dataset, Draws, Recipe, fetching, hookimpl, random_crop, require_files


def load(split: str, data: Path | None, download: bool) -> ArrayImages:
    """Read torchvision's files below ``data`` (``train_32x32.mat``, ``test_32x32.mat``) after checking them."""
    from torchvision.datasets import SVHN

    place = data or Path("data")
    url, file, checksum = SVHN.split_list[split]
    if download:
        with fetching("svhn", url, place):
            SVHN(str(place), split=split, download=True)
    require_files("svhn", place, {file: checksum})
    source = SVHN(str(place), split=split)
    return ArrayImages(np.ascontiguousarray(source.data.transpose(0, 2, 3, 1)), source.labels.astype(np.int64))


def augment(x: Tensor, draws: Draws) -> Tensor:
    """Random crop with a margin of 4 pixels; digits are not mirrored."""
    return random_crop(x, draws, padding=4)


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "svhn",
            load,
            shape=(3, 32, 32),
            class_names=tuple("0123456789"),
            mean=(0.4377, 0.4438, 0.4728),
            std=(0.1980, 0.2010, 0.1970),
            summary="SVHN, 32x32 colour images of digits on houses",
            augment=augment,
            like="cifar10",
            recipe=Recipe(
                arch="resnet110", sigma=0.25, epochs=150, batch_size=256, lr=0.01, milestones=(50, 100),
                source="smoothctl's default for svhn",
            ),
        )
    ]  # fmt: skip
