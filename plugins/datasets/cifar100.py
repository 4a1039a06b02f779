"""CIFAR-100: 32x32 colour images of a hundred classes, 50,000 to train and 10,000 to test (Krizhevsky 2009)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from torch import Tensor

from smoothctl import ArrayImages, Dataset, DatasetMissing, Draws, Recipe, hookimpl, random_crop, random_flip

CLASS_NAMES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl",
    "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair",
    "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin",
    "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp",
    "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain",
    "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck",
    "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket",
    "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider", "squirrel",
    "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip


def load(split: str, data: Path | None, download: bool) -> ArrayImages:
    """Read torchvision's files below ``data`` (``cifar-100-python``), whose checksums it verifies."""
    from torchvision.datasets import CIFAR100

    place = data or Path("data")
    try:
        source = CIFAR100(str(place), train=split == "train", download=download)
    except RuntimeError:
        raise DatasetMissing("cifar100", place, "cifar-100-python/train, test and meta") from None
    return ArrayImages(source.data, np.array(source.targets, dtype=np.int64))


def augment(x: Tensor, draws: Draws) -> Tensor:
    """Random crop with a margin of 4 pixels, and horizontal flip."""
    return random_flip(random_crop(x, draws, padding=4), draws)


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "cifar100",
            load,
            shape=(3, 32, 32),
            class_names=CLASS_NAMES,
            mean=(0.5071, 0.4865, 0.4409),
            std=(0.2673, 0.2564, 0.2762),
            summary="CIFAR-100, 32x32 colour images of a hundred classes",
            augment=augment,
            like="cifar10",
            recipe=Recipe(
                arch="resnet110", sigma=0.25, epochs=200, batch_size=128, lr=0.1, milestones=(100, 150),
                source="smoothctl's default, after the CRT paper's CIFAR-10 setting",
            ),
        )
    ]  # fmt: skip
