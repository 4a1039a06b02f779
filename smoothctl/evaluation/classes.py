"""A model's classes and a dataset's: matched by name, so that a label means the same to both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smoothctl.base import console
from smoothctl.base.errors import UsageError
from smoothctl.hooks.datasets import ArrayImages, Dataset, LabelledImages
from smoothctl.images.resizing import FittedImages
from smoothctl.models.checkpoint import Model


@dataclass(frozen=True)
class Relabelled:
    """A source whose labels are those of a model: ``numbers[label]``."""

    source: LabelledImages
    numbers: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int, /) -> tuple[Any, int]:
        image, label = self.source[index]
        return image, self.numbers[label]

    def __getattr__(self, name: str) -> Any:
        if name in ("source", "numbers", "labels") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.source, name)


def match_classes(model: Model, dataset: Dataset, images: LabelledImages) -> tuple[Dataset, LabelledImages]:
    """A dataset and its images with a model's class names and labels; it may lack some of the model's classes.

    Raises UsageError if it has a class that the model does not.
    """
    own, names = tuple(model.info.class_names), dataset.class_names
    if own == names:
        return dataset, images
    unknown = [name for name in names if name not in set(own)]
    if unknown or len(set(own)) != len(own):
        raise UsageError(
            f"{model.path} has {len(own)} classes, dataset {dataset.name} has {len(names)}"
            + (f", of which {unknown[0]!r} is none of the model's" if unknown else "")
            + ": the labels would not mean the same"
        )
    missing = [name for name in own if name not in set(names)]
    lacking = f"; {dataset.name} has no image of {', '.join(missing[:8])}{', ...' if len(missing) > 8 else ''}"
    console.note(f"classes are matched by name{lacking if missing else ', as they are in another order'}")
    numbers = tuple(own.index(name) for name in names)
    return replace(dataset, class_names=own), _relabel(images, numbers)


def _relabel(images: LabelledImages, numbers: tuple[int, ...]) -> LabelledImages:
    if isinstance(images, ArrayImages):
        return replace(images, labels=np.array(numbers, dtype=np.int64)[images.labels], class_names=())
    if isinstance(images, FittedImages):
        return replace(images, source=Relabelled(images.source, numbers))
    return Relabelled(images, numbers)
