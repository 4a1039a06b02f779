"""The training loop: fresh noise, no clipping, an untouched teacher."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from smoothctl import Architecture, ArrayImages, Dataset, load_model
from smoothctl.hooks.registry import Registered, Source, forget, registry
from smoothctl.training.batches import TrainingData
from smoothctl.training.execution import Execution
from smoothctl.training.settings import TeacherSettings, TrainSettings
from smoothctl.training.trainer import Trainer

SEEN: list[Tensor] = []
CPU = Execution(torch.device("cpu"), teacher=TeacherSettings(teacher_backend="eager"))


class Recorder(nn.Module):
    """A network that keeps what it is shown while training."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            SEEN.append(x.detach().clone())
        return self.linear(x.flatten(1))


DATASET = Dataset("four", lambda *_: None, (1, 4, 4), tuple("0123456789"), (0.0,), (1.0,))  # type: ignore[arg-type,return-value]
IMAGES = ArrayImages(np.full((4, 4, 4), 255, np.uint8), np.arange(4))


@pytest.fixture
def trainer() -> Trainer:
    SEEN.clear()
    forget()
    source = Source("test", "test", "1")
    registry().by_name["architecture"]["recorder"] = Registered(
        "architecture", Architecture("recorder", lambda spec: Recorder()), source
    )
    registry().by_name["dataset"]["four"] = Registered("dataset", DATASET, source)
    settings = TrainSettings(arch="recorder", dataset="four", sigma=0.5, epochs=2, batch_size=4)
    yield Trainer(settings, TrainingData(DATASET, IMAGES, IMAGES), CPU)
    forget()


def test_noise_is_drawn_afresh_at_each_step_and_not_clipped(trainer: Trainer) -> None:
    for epoch in range(40):
        trainer.run_epoch(epoch, lambda *_: None)
    noise = torch.stack(SEEN) - 1.0  # all images are white
    assert len(torch.unique(noise.flatten())) > 0.99 * noise.numel()
    assert float(noise.std()) == pytest.approx(0.5, rel=0.1)
    assert float(torch.stack(SEEN).max()) > 1.0


def test_learning_rate_drops_at_the_start_of_milestones() -> None:
    settings = TrainSettings(epochs=8, lr=1.0, milestones=(2, 5))
    assert [settings.learning_rate(epoch) for epoch in range(8)] == pytest.approx(
        [1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01]
    )


@pytest.mark.parametrize(
    ("epochs", "rates"),
    [(1, [1]), (2, [1, 0.1]), (3, [1, 0.1, 0.01]), (4, [1, 1, 0.1, 0.01]), (5, [1, 1, 0.1, 0.01, 0.01])],
)
def test_without_milestones_the_first_epoch_has_the_whole_rate_and_each_drop_its_epoch(
    epochs: int, rates: list[float]
) -> None:
    settings = TrainSettings(epochs=epochs, lr=1.0)
    assert [settings.learning_rate(epoch) for epoch in range(epochs)] == pytest.approx(rates)


def test_teacher_gets_no_gradient_and_keeps_its_buffers(trained: Path) -> None:
    from smoothctl.images.datasets import open_split
    from smoothctl.training.teacher import check_teacher

    dataset = registry().find("dataset", "digits").value
    data = TrainingData(dataset, open_split(dataset, "train"), open_split(dataset, "test"))
    teacher = load_model(trained)
    before = {key: value.clone() for key, value in teacher.classifier.state_dict().items()}
    settings = TrainSettings(method="crt", arch="resnet20", epochs=1)
    check_teacher(teacher, settings, dataset)
    run = Trainer(settings, data, CPU, teacher)
    run.run_epoch(0, lambda *_: None)
    assert not teacher.classifier.training
    assert all(parameter.grad is None for parameter in teacher.classifier.parameters())
    assert all(torch.equal(value, before[key]) for key, value in teacher.classifier.state_dict().items())


def test_teacher_and_student_see_the_same_noisy_batch(trained: Path, trainer: Trainer) -> None:
    teacher = load_model(trained)
    seen: list[Tensor] = []
    settings = TrainSettings(method="crt", arch="recorder", dataset="four", sigma=0.5, epochs=1, batch_size=2)
    small = Dataset("four", DATASET.load, (1, 8, 8), DATASET.class_names, (0.0,), (1.0,))
    images = ArrayImages(np.full((4, 8, 8), 128, np.uint8), np.arange(4))
    registry().by_name["architecture"]["recorder"] = Registered(
        "architecture", Architecture("recorder", lambda spec: Wide()), Source("test", "test", "1")
    )
    run = Trainer(settings, TrainingData(small, images, images), CPU, teacher)
    assert run.taught is not None
    answer = run.taught.logits

    def watched(x: Tensor) -> Tensor:
        seen.append(x.clone())
        return answer(x)

    run.taught = dataclasses.replace(run.taught, logits=watched)
    SEEN.clear()
    run.run_epoch(0, lambda *_: None)
    assert len(seen) == len(SEEN) == 2
    assert all(torch.equal(one, other) for one, other in zip(seen, SEEN, strict=True))


class Wide(Recorder):
    """The recorder for 8x8 images."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 10)
