"""Classes of a model and of a dataset, matched by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smoothctl.base.errors import UsageError
from smoothctl.evaluation.classes import match_classes
from smoothctl.hooks.datasets import ArrayImages
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import read
from smoothctl.images.resizing import Fit, FittedImages
from smoothctl.models.checkpoint import load_model

NAMES = tuple("abcdefghij")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("names", "labels"),
    [(NAMES, [0, 9]), (tuple(reversed(NAMES)), [9, 0]), (("j", "b"), [9, 1])],
    ids=["same", "order", "some"],
)
def test_labels_become_the_models(names: tuple[str, ...], labels: list[int], streamed: bool, trained: Path) -> None:
    model = load_model(trained)
    model = replace(model, info=model.info.model_copy(update={"class_names": list(NAMES)}))
    dataset = replace(registry().find("dataset", "digits").value, class_names=names)
    own = [0, len(names) - 1]
    images: Any = ArrayImages(np.zeros((2, 8, 8), np.uint8), np.array(own), names)
    if streamed:
        images = FittedImages(list(zip(images.images, own, strict=True)), Fit((1, 8, 8)), "test")
    known, matched = match_classes(model, dataset, images)
    assert known.class_names == NAMES
    assert [read(matched, index).label for index in range(2)] == labels


def test_a_class_that_the_model_does_not_have_is_refused(trained: Path) -> None:
    dataset = replace(registry().find("dataset", "digits").value, class_names=("0", "x"))
    images = ArrayImages(np.zeros((2, 8, 8), np.uint8), np.array([0, 1]))
    with pytest.raises(UsageError, match="has 10 classes, dataset digits has 2, of which 'x' is none of the model's"):
        match_classes(load_model(trained), dataset, images)
