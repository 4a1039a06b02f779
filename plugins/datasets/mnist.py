"""MNIST and Fashion-MNIST: 28x28 grey images, 60,000 to train and 10,000 to test.

LeCun et al. 1998; Xiao et al. 2017.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from smoothctl import ArrayImages, Dataset, DatasetMissing, Recipe, fetching, hookimpl, require_files, root_of

FASHION_CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
FILES = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))


def load(name: str, kind: str, split: str, data: Path | None, download: bool) -> ArrayImages:
    """Read torchvision's files below ``data`` (``MNIST/raw``, ``FashionMNIST/raw``)."""
    from torchvision import datasets

    source, place = getattr(datasets, kind), root_of(data, f"{kind}/raw")
    if download:
        address = f"{source.mirrors[0]}{source.resources[0][0]} and its companions"
        with fetching(name, address, place / kind / "raw"):
            source(str(place), download=True)
    files = {f"{kind}/raw/{file}": None for file in FILES}
    require_files(name, place, files)
    try:
        opened = source(str(place), train=split == "train")
    except Exception as error:  # damaged files raise what their bytes lead to
        reason = f"its files are damaged ({type(error).__name__}: {' '.join(str(error).split())[:100]})"
        raise DatasetMissing(name, place, f"{next(iter(files))} and its companions", wrong=reason) from None
    return ArrayImages(opened.data.numpy(), opened.targets.numpy())


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "mnist",
            partial(load, "mnist", "MNIST"),
            shape=(1, 28, 28),
            class_names=tuple("0123456789"),
            mean=(0.0,),
            std=(1.0,),
            summary="MNIST, 28x28 grey digits; the field's models take its pixels as they are",
            recipe=Recipe(
                arch="lenet", sigma=0.5, epochs=90, batch_size=256, lr=0.01, milestones=(30, 60),
                source="Jeong and Shin 2020, MNIST setting",
            ),
        ),
        Dataset(
            "fashion-mnist",
            partial(load, "fashion-mnist", "FashionMNIST"),
            shape=(1, 28, 28),
            class_names=FASHION_CLASSES,
            mean=(0.286,),
            std=(0.353,),
            summary="Fashion-MNIST, 28x28 grey images of ten kinds of clothes",
            aliases=("fashion_mnist",),
            like="mnist",
            recipe=Recipe(
                arch="lenet", sigma=0.25, epochs=90, batch_size=256, lr=0.01, milestones=(30, 60),
                source="smoothctl's default, after the field's MNIST setting",
            ),
        ),
    ]  # fmt: skip
