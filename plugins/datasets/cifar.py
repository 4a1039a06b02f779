"""CIFAR-10 and CIFAR-100: 32x32 colour images, 50,000 to train and 10,000 to test (Krizhevsky 2009)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from smoothctl import (
    ArrayImages,
    Dataset,
    Draws,
    Recipe,
    fetching,
    hookimpl,
    random_crop,
    random_flip,
    require_files,
    root_of,
)

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR100_CLASSES = (
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


def load(name: str, split: str, data: Path | None, download: bool) -> ArrayImages:
    """Read torchvision's files below ``data`` (``cifar-10-batches-py``, ``cifar-100-python``) if they are whole."""
    from torchvision import datasets

    kind = getattr(datasets, name.upper())
    place = root_of(data, kind.base_folder)
    if download:
        with fetching(name, kind.url, place):
            kind(str(place), download=True)
    parts = [*kind.train_list, *kind.test_list, (kind.meta["filename"], kind.meta["md5"])]
    files = {f"{kind.base_folder}/{part}": md5 for part, md5 in parts}
    require_files(name, place, files, (kind.filename, kind.tgz_md5))
    source = kind(str(place), train=split == "train")
    return ArrayImages(source.data, np.array(source.targets, dtype=np.int64))


def augment(x: Tensor, draws: Draws) -> Tensor:
    """Random crop with a margin of 4 pixels, and horizontal flip."""
    return random_flip(random_crop(x, draws, padding=4), draws)


@hookimpl
def register_datasets() -> list[Dataset]:
    recipe = Recipe(arch="resnet110", sigma=0.25, epochs=200, batch_size=128, lr=0.1, milestones=(100, 150))
    return [
        Dataset(
            "cifar10",
            partial(load, "cifar10"),
            shape=(3, 32, 32),
            class_names=CIFAR10_CLASSES,
            mean=(0.4914, 0.4822, 0.4465),
            std=(0.2023, 0.1994, 0.2010),
            summary="CIFAR-10, 32x32 colour images of ten classes",
            augment=augment,
            recipe=recipe.replace(source="CRT paper (NeurIPS 2022), table 16"),
        ),
        Dataset(
            "cifar100",
            partial(load, "cifar100"),
            shape=(3, 32, 32),
            class_names=CIFAR100_CLASSES,
            mean=(0.5071, 0.4865, 0.4409),
            std=(0.2673, 0.2564, 0.2762),
            summary="CIFAR-100, 32x32 colour images of a hundred classes",
            augment=augment,
            like="cifar10",
            recipe=recipe.replace(source="smoothctl's default, after the CRT paper's CIFAR-10 setting"),
        ),
    ]
