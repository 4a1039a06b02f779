"""The order of training images."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from smoothctl.base.draws import Draws
from smoothctl.training.batches import balanced_order
from tests.cli.conftest import Typed, typed

__all__ = ["typed"]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(0, 3))
def test_each_class_comes_equally_often_and_each_image_before_one_comes_again(labels: list[int], key: int) -> None:
    known = np.array(labels)
    order = balanced_order(known, Draws(0, key)).numpy()
    assert len(order) == len(labels)
    drawn = np.bincount(known[order], minlength=6)[np.unique(known)]
    assert drawn.max() - drawn.min() <= 1
    for label in np.unique(known):
        times = np.bincount(order[known[order] == label], minlength=len(labels))[known == label]
        assert times.max() - times.min() <= 1
    assert (balanced_order(known, Draws(0, key)).numpy() == order).all()


def test_another_epoch_has_another_order() -> None:
    labels = np.array([0] * 50 + [1] * 5)
    first, second = (balanced_order(labels, Draws(0, epoch)).tolist() for epoch in (0, 1))
    assert first != second


@pytest.fixture
def unlike(workplace: Path) -> Path:
    """Two classes, one with six times more images than the other."""
    random = np.random.default_rng(0)
    for name, count in (("many", 60), ("few", 10)):
        (workplace / "images" / name).mkdir(parents=True)
        for number in range(count):
            image = random.integers(0, 256, (8, 8), np.uint8)
            Image.fromarray(image).save(workplace / "images" / name / f"{number}.png")
    return workplace / "images"


def test_unlike_classes_are_named_and_balanced_on_request(unlike: Path, typed: Typed) -> None:
    line = f"train --dataset folder --data {unlike} --arch lenet --epochs 2 --batch-size 8 --lr 0.001 --normalize none"
    done = typed(f"{line} --out plain")
    assert done.code == 0
    assert "classes have 8 to 48 images; --balanced draws each equally often in an epoch" in done.err
    assert "balanced" not in json.loads(Path("plain/settings.json").read_text())["settings"]
    done = typed(f"{line} --balanced --out balanced")
    assert done.code == 0
    assert "classes have" not in done.err
    assert json.loads(Path("balanced/settings.json").read_text())["settings"]["balanced"] is True
    refused = typed(f"{line} --out balanced")
    assert refused.code == 2
    assert "balanced true in file" in refused.err
