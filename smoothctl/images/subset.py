"""A part of a dataset's images, with as many of each class as there are."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from smoothctl.base.draws import Draws
from smoothctl.base.streams import Stream
from smoothctl.hooks.datasets import ArrayImages, LabelledImages
from smoothctl.images.resizing import FittedImages


@dataclass(frozen=True)
class SubsetImages:
    """The images of a source at these places."""

    source: LabelledImages
    places: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int, /) -> tuple[Any, int]:
        return self.source[self.places[index]]

    def image_id(self, index: int) -> str:
        """The name that the source has for the image."""
        from smoothctl.images.datasets import image_id

        return image_id(self.source, self.places[index])


def take_balanced(images: LabelledImages, limit: int, seed: int = 0) -> LabelledImages:
    """At most ``limit`` images, chosen by the seed, as many of each class as there are, in their order."""
    if limit >= len(images):
        return images
    labels = labels_of(images)
    by_class: dict[int, list[int]] = defaultdict(list)
    for place in Draws(seed, 0, Stream.TRAIN_ORDER).permutation(len(labels)).tolist():
        by_class[labels[place]].append(place)
    turns = zip_longest(*(by_class[label] for label in sorted(by_class)))
    drawn = (place for turn in turns for place in turn if place is not None)
    places = sorted(islice(drawn, limit))
    if isinstance(images, ArrayImages):
        return ArrayImages(images.images[places], images.labels[places], images.class_names)
    if isinstance(images, FittedImages):
        return replace(images, source=SubsetImages(images.source, tuple(places)))
    return SubsetImages(images, tuple(places))


def labels_of(images: LabelledImages) -> list[int]:
    """The label of every image, without reading the images where the source keeps labels."""
    kept = getattr(images, "labels", None)
    if kept is not None and len(kept) == len(images):
        return [int(label) for label in np.asarray(kept)]
    return [int(images[index][1]) for index in range(len(images))]
