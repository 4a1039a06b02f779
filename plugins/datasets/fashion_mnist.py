"""Fashion-MNIST: 28x28 grey clothes, 60,000 to train and 10,000 to test (Xiao et al. 2017)."""

from __future__ import annotations

from pathlib import Path

from smoothctl import ArrayImages, Dataset, DatasetMissing, Recipe, hookimpl

CLASS_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


def load(split: str, data: Path | None, download: bool) -> ArrayImages:
    """Read torchvision's files below ``data`` (``FashionMNIST/raw``)."""
    from torchvision.datasets import FashionMNIST

    place = data or Path("data")
    try:
        source = FashionMNIST(str(place), train=split == "train", download=download)
    except (RuntimeError, OSError, ValueError):
        raise DatasetMissing(
            "fashion-mnist", place, "FashionMNIST/raw/train-images-idx3-ubyte and its companions"
        ) from None
    return ArrayImages(source.data.numpy(), source.targets.numpy())


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "fashion-mnist",
            load,
            shape=(1, 28, 28),
            class_names=CLASS_NAMES,
            mean=(0.286,),
            std=(0.353,),
            summary="Fashion-MNIST, 28x28 grey images of ten kinds of clothes",
            aliases=("fashion_mnist",),
            like="mnist",
            recipe=Recipe(
                arch="lenet", sigma=0.25, epochs=90, batch_size=256, lr=0.01, milestones=(30, 60),
                source="smoothctl's default, after the field's MNIST setting",
            ),
        )
    ]  # fmt: skip
