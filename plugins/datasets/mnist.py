"""MNIST: 28x28 grey digits, 60,000 to train and 10,000 to test (LeCun et al. 1998)."""

from __future__ import annotations

from pathlib import Path

from smoothctl import ArrayImages, Dataset, DatasetMissing, Recipe, hookimpl


def load(split: str, data: Path | None, download: bool) -> ArrayImages:
    """Read torchvision's files below ``data`` (``MNIST/raw``)."""
    from torchvision.datasets import MNIST

    place = data or Path("data")
    try:
        source = MNIST(str(place), train=split == "train", download=download)
    except (RuntimeError, OSError, ValueError):
        raise DatasetMissing("mnist", place, "MNIST/raw/train-images-idx3-ubyte and its companions") from None
    return ArrayImages(source.data.numpy(), source.targets.numpy())


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "mnist",
            load,
            shape=(1, 28, 28),
            class_names=tuple("0123456789"),
            mean=(0.0,),
            std=(1.0,),
            summary="MNIST, 28x28 grey digits; the field's models take its pixels as they are",
            recipe=Recipe(
                arch="lenet", sigma=0.5, epochs=90, batch_size=256, lr=0.01, milestones=(30, 60),
                source="Jeong and Shin 2020, MNIST setting",
            ),
        )
    ]  # fmt: skip
