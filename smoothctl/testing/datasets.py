"""A dataset is held to what training and certifying rely on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch

from smoothctl.base.draws import Draws
from smoothctl.hooks.datasets import Dataset
from smoothctl.images.datasets import open_dataset, pixels

LOOKED_AT = 50


def check_dataset(dataset: Dataset, data: Path | None = None) -> None:
    """Open each split of a dataset without a network; raise AssertionError with what does not fit.

    Pixels in [0,1] of the declared shape, the same ones each time, labels of the declared classes, and an augmentation
    that keeps shapes and draws from what it is given. ``data``: where its files are, if it needs some.
    """
    name = dataset.name
    assert dataset.summary, f"{name}: say in summary what it is"
    assert len(set(dataset.class_names)) == len(dataset.class_names), f"{name}: a class name comes twice"
    channels = dataset.shape[0] if dataset.shape and dataset.mean else 0
    assert len(dataset.mean) == len(dataset.std) == channels, f"{name}: mean and std have not one number per channel"
    for split in dataset.splits or ("test",):
        with _offline(name):
            known, images = open_dataset(dataset, split, data)
        assert len(images) > 0, f"{name}: split {split} has no image"
        for index in range(0, len(images), max(1, len(images) // LOOKED_AT)):
            x, label = pixels(images, index), images[index][1]
            assert tuple(x.shape) == known.shape, f"{name}: image {index} of {split} has shape {tuple(x.shape)}"
            assert 0 <= label < len(known.class_names), f"{name}: image {index} of {split} has label {label}"
            assert torch.equal(x, pixels(images, index)), f"{name}: image {index} of {split} is another the second time"
        if dataset.augment is not None:
            x = torch.stack([pixels(images, index) for index in range(min(8, len(images)))])
            first, again = (dataset.augment(x.clone(), Draws(0, 1)) for _ in range(2))
            assert first.shape == x.shape, f"{name}: augment changes the shape of a batch"
            assert torch.equal(first, again), f"{name}: augment draws from elsewhere than its draws"


@contextmanager
def _offline(name: str) -> Iterator[None]:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError(f"{name}: it uses the network without being asked to download")

    with mock.patch.object(socket.socket, "connect", refuse):
        yield
