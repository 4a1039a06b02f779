"""The digits that scikit-learn embeds: 1,797 real 8x8 grey images, so that nothing need be downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from smoothctl import ArrayImages, Dataset, Recipe, UsageError, hookimpl

TEST_IMAGES = 360
LEVELS = 240  # the finest grid below 8 bits that holds multiples of 1/16


def load(split: str, data: Path | None, download: bool) -> ArrayImages:
    """A fixed stratified split: 1,437 images to train, 360 to test. Pixels 0..16 become [0,1]."""
    if data is not None:
        raise UsageError(f"digits are embedded, so nothing is read from {data}; name what lies there: `dataset=folder`")
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    train, test = train_test_split(
        np.arange(len(digits.target)), test_size=TEST_IMAGES, stratify=digits.target, random_state=0
    )
    chosen = np.sort(train if split == "train" else test)
    images = (digits.images[chosen] / 16).astype(np.float32)
    return ArrayImages(images, digits.target[chosen].astype(np.int64), levels=LEVELS)


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "digits",
            load,
            shape=(1, 8, 8),
            class_names=tuple("0123456789"),
            mean=(0.305,),
            std=(0.376,),
            summary="1,797 handwritten digits, 8x8 grey, embedded in scikit-learn",
            recipe=Recipe(
                arch="lenet", sigma=0.25, epochs=40, batch_size=64, lr=0.05, weight_decay=5e-4,
                source="smoothctl's default for digits",
            ),
        )
    ]  # fmt: skip
