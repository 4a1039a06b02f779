"""ImageNet in small: random resized crops in training, the same centre crops in evaluation, the whole road."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from smoothctl import Draws, random_resized_crop
from smoothctl.hooks.registry import registry
from smoothctl.images.batches import BatchReader
from smoothctl.images.datasets import open_dataset
from smoothctl.training.batches import Batches, TrainingData
from smoothctl.training.execution import Execution
from smoothctl.training.settings import TrainSettings

IDS = ("n01440764", "n01530575", "n01601694")


def tree(place: Path) -> Path:
    """Pictures whose columns count up, so that a crop tells where it was, in folders by WordNet id."""
    for split in ("train", "val"):
        for number, name in enumerate(IDS):
            (place / split / name).mkdir(parents=True)
            columns = np.tile(np.arange(100, dtype=np.uint8) * 2, (80, 1))
            picture = np.stack([columns, columns.T[:80, :80].repeat(2, 1)[:, :100], columns * 0 + number], axis=2)
            Image.fromarray(picture).save(place / split / name / "a.png")
    return place


def batches(place: Path, augment: bool, workers: int = 0, seed: int = 0) -> Batches:
    dataset = registry().find("dataset", "imagenet").value
    opened, images = open_dataset(dataset, "train", place, shape=(3, 32, 32))
    settings = TrainSettings(dataset="imagenet", arch="resnet18", batch_size=3, epochs=2, augment=augment, seed=seed)
    execution = Execution(torch.device("cpu"), workers=workers)
    return Batches(
        settings, TrainingData(opened, images, images), registry().find("noise", "gaussian").value, execution
    )


def first(of: Batches, epoch: int) -> torch.Tensor:
    (_, batch) = next(iter(of.of_epoch(epoch)))
    return batch.x[batch.index.argsort()]


def test_training_sees_other_parts_each_epoch_whoever_reads_them(tmp_path: Path) -> None:
    here = batches(tree(tmp_path), augment=True)
    one, again, other = first(here, 0), first(here, 0), first(here, 1)
    assert one.shape == (3, 3, 32, 32)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert torch.equal(one, first(batches(tmp_path, augment=True, workers=2), 0))
    assert not torch.equal(one, first(batches(tmp_path, augment=True, seed=1), 0))


def test_without_augmentation_and_in_evaluation_images_are_cropped_in_the_centre(tmp_path: Path) -> None:
    plain = batches(tree(tmp_path), augment=False)
    assert torch.equal(first(plain, 0), first(plain, 1))
    dataset = registry().find("dataset", "imagenet").value
    _, images = open_dataset(dataset, "val", tmp_path, shape=(3, 32, 32))
    (x, _, _) = next(iter(BatchReader(images, torch.device("cpu")).read([[0, 1, 2]], 7)))
    assert torch.equal(x, first(plain, 0))


def test_crops_reach_the_border_and_never_leave_the_image() -> None:
    white = Image.new("L", (50, 40), 255)
    ramp = Image.fromarray(np.tile(np.arange(250, dtype=np.uint8), (200, 1)))
    smallest, largest, widths = 255, 0, set()
    for key in range(200):
        assert np.asarray(random_resized_crop(white, (16, 16), Draws(0, key))).min() == 255
        crop = np.asarray(random_resized_crop(ramp, (16, 16), Draws(0, key)))
        smallest, largest = min(smallest, int(crop.min())), max(largest, int(crop.max()))
        widths.add(int(crop.max()) - int(crop.min()))
    assert smallest < 10
    assert largest > 240
    assert min(widths) < 90
    assert max(widths) > 180


@pytest.mark.parametrize("method", ["gaussian", "consistency"])
def test_methods_take_the_settings_of_imagenet(method: str) -> None:
    from smoothctl.training.recipes import resolve_settings

    settings, _ = resolve_settings(
        TrainSettings(sigma=0.5), registry().find("method", method).value, registry().find("dataset", "imagenet").value
    )
    assert (settings.arch, settings.epochs, settings.milestones) == ("resnet50", 90, (30, 60))
