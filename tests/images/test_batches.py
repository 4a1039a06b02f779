"""Batches of images whose labels and shapes are what training takes for granted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from smoothctl import ArrayImages, SmoothctlError
from smoothctl.images.batches import BatchReader
from smoothctl.images.resizing import Fit, FittedImages

CPU = torch.device("cpu")
PIXELS = np.zeros((4, 6, 6), np.float32)


def streamed(images: list[tuple[np.ndarray, int]]) -> FittedImages:
    return FittedImages(images, Fit((1, 6, 6), None))


@pytest.mark.parametrize("label", [-1, 3])
@pytest.mark.parametrize("workers", [None, 0, 1])
def test_a_label_of_no_class_is_named(label: int, workers: int | None) -> None:
    labels = np.array([0, 1, label, 2])
    words = f"image 2 has the label {label}, but there are 3 classes"
    if workers is None:
        with pytest.raises(SmoothctlError, match=words):
            BatchReader(ArrayImages(PIXELS, labels), CPU, classes=3)
        return
    reader = BatchReader(streamed(list(zip(PIXELS, labels.tolist(), strict=True))), CPU, workers, classes=3)
    with pytest.raises(SmoothctlError, match=words):
        list(reader.read([[0, 1], [2, 3]], 0))


@pytest.mark.parametrize("labels", [np.array([0, 1, 2]), np.zeros((4, 1), np.int64), np.zeros(4, np.float32)])
def test_labels_that_are_not_one_whole_number_an_image_are_refused(labels: np.ndarray) -> None:
    with pytest.raises(SmoothctlError, match="one whole number an image"):
        BatchReader(ArrayImages(PIXELS, labels), CPU)


def test_labels_of_any_width_become_int64() -> None:
    reader = BatchReader(ArrayImages(PIXELS, np.arange(4, dtype=np.uint8)), CPU, classes=4)
    ((_, y, _),) = reader.read([[3, 1]], 0)
    assert y.dtype == torch.int64
    assert y.tolist() == [3, 1]


def test_arrays_of_different_shapes_are_named() -> None:
    reader = BatchReader(streamed([(PIXELS[0], 0), (PIXELS[0, :5], 1)]), CPU)
    with pytest.raises(SmoothctlError, match=r"image 1 has shape \(1, 5, 6\), others \(1, 6, 6\)"):
        list(reader.read([[0, 1]], 0))
