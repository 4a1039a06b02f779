"""Starting from weights: heads that are replaced, layers that are frozen or slower, balanced parts of a dataset."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from smoothctl import ArrayImages, load_model
from smoothctl.base.errors import UsageError
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import fingerprint, image_id, open_split
from smoothctl.images.subset import SubsetImages, take_balanced
from smoothctl.models.classifier import build_classifier
from smoothctl.training.batches import TrainingData
from smoothctl.training.execution import Execution
from smoothctl.training.initial import check_initial, find_head, start_from
from smoothctl.training.settings import TrainSettings
from smoothctl.training.trainer import Trainer

DIGITS = registry().find("dataset", "digits").value


def trainer(init: Path, **settings: object) -> Trainer:
    images = open_split(DIGITS, "train")
    assert isinstance(images, ArrayImages)
    few = ArrayImages(images.images[:64], images.labels[:64])
    chosen = TrainSettings.model_validate({"arch": "lenet", "epochs": 1, "batch_size": 32, "lr": 0.01, **settings})
    return Trainer(chosen, TrainingData(DIGITS, few, few), Execution(torch.device("cpu")), init=load_model(init))


def weights(of: Trainer) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in of.model.network.state_dict().items()}


def test_a_run_starts_from_the_weights_of_another(trained: Path) -> None:
    begun = weights(trainer(trained))
    given = load_model(trained).classifier.network.state_dict()
    assert all(torch.equal(begun[key], given[key]) for key in given)


def test_only_a_head_for_other_classes_is_replaced(trained: Path) -> None:
    init = load_model(trained)
    model = build_classifier("lenet", 4, (1, 8, 8))
    before = {key: value.clone() for key, value in model.network.state_dict().items()}
    assert start_from(model, init, 4) == ["fc2.weight", "fc2.bias"]
    after, given = model.network.state_dict(), init.classifier.network.state_dict()
    for key, value in after.items():
        assert torch.equal(value, before[key] if key.startswith("fc2.") else given[key])
    with pytest.raises(UsageError, match=r"does not fit: fc1\.weight is"):
        start_from(build_classifier("lenet", 10, (1, 28, 28)), init, 10)
    with pytest.raises(UsageError, match="which cannot start resnet20"):
        check_initial(init, "resnet20")


def test_frozen_layers_stay_and_slow_ones_move_less(trained: Path) -> None:
    moved: dict[float, dict[str, float]] = {}
    for factor in (0.0, 0.01, 1.0):
        run = trainer(trained, lr_layers=factor, momentum=0, weight_decay=0)
        before = weights(run)
        run.run_epoch(0, lambda *_: None)
        moved[factor] = {key: float((value - before[key]).norm()) for key, value in weights(run).items()}
    body = [key for key in moved[1.0] if not key.startswith("fc2.")]
    assert all(moved[0.0][key] == 0 for key in body)
    assert all(0 < moved[0.01][key] < moved[1.0][key] / 20 for key in body)
    assert all(moved[factor]["fc2.weight"] > 0 for factor in moved)


def test_frozen_batch_norm_keeps_its_statistics(tmp_path: Path) -> None:
    from smoothctl.models.checkpoint import save_model

    fresh = Trainer(
        TrainSettings(arch="resnet20", epochs=1), TrainingData(DIGITS, *[open_split(DIGITS, "test")] * 2),
        Execution(torch.device("cpu")),
    )  # fmt: skip
    save_model(tmp_path / "model.pt", fresh.info(1), fresh.trained.network.state_dict())
    run = trainer(tmp_path / "model.pt", arch="resnet20", lr_layers=0.0)
    before = weights(run)
    run.run_epoch(0, lambda *_: None)
    changed = [key for key, value in weights(run).items() if not torch.equal(value, before[key])]
    assert changed == ["fc.weight", "fc.bias"]
    assert find_head(run.model.network, 10) is run.model.network.get_submodule("fc")


def test_a_limit_takes_as_many_of_each_class() -> None:
    images = open_split(DIGITS, "train")
    few = take_balanced(images, 25, seed=3)
    assert isinstance(few, ArrayImages)
    counts = Counter(few.labels.tolist())
    assert len(few) == 25
    assert set(counts.values()) <= {2, 3}
    assert fingerprint(few) == fingerprint(take_balanced(images, 25, seed=3))
    assert fingerprint(few) != fingerprint(take_balanced(images, 25, seed=4))
    assert take_balanced(images, 10**6) is images


def test_a_limit_of_a_class_with_few_images_takes_more_of_others() -> None:
    labels = np.array([0] * 3 + [1] * 40)
    few = take_balanced(ArrayImages(np.zeros((43, 4, 4), np.uint8), labels), 10)
    assert isinstance(few, ArrayImages)
    assert Counter(few.labels.tolist()) == {0: 3, 1: 7}


def test_a_part_keeps_the_names_of_its_images() -> None:
    class Named:
        labels = (0, 1, 0, 1)

        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
            return np.full((4, 4), index, np.uint8), self.labels[index]

        def image_id(self, index: int) -> str:
            return f"image{index}"

    part = take_balanced(Named(), 2)
    assert isinstance(part, SubsetImages)
    for at, place in enumerate(part.places):
        assert image_id(part, at) == f"image{place}"
        assert part[at][1] == Named.labels[place]
