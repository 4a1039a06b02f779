"""What a teacher must be before it may teach: fit, finite, not written over, and better than guessing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from smoothctl.base import console
from smoothctl.base.errors import UsageError
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.registry import registry
from smoothctl.models.checkpoint import Model
from smoothctl.training.settings import TrainSettings, method_options
from smoothctl.training.trainer import Trainer


def check_teacher(teacher: Model, settings: TrainSettings, dataset: Dataset) -> None:
    """Raise UsageError for a teacher that cannot teach here, or nothing; warn if it is for another sigma."""
    info = teacher.info
    if not all(torch.isfinite(value).all() for value in teacher.classifier.state_dict().values()):
        raise UsageError(f"the teacher {teacher.path} has weights that are not finite: it diverged, so train it anew")
    if len(info.class_names) != len(dataset.class_names):
        raise UsageError(f"teacher has {len(info.class_names)} classes, student {len(dataset.class_names)}")
    if info.input_shape != dataset.shape:
        raise UsageError(
            f"teacher takes images of shape {info.input_shape}, dataset {dataset.name} has {dataset.shape}"
        )
    if info.class_names != list(dataset.class_names):
        raise UsageError(f"teacher's classes have other names or another order than those of {dataset.name}")
    if not _takes_any_sigma(settings) and info.sigma is not None and info.sigma != settings.sigma:
        console.warn(
            f"the teacher was trained for sigma {info.sigma:g}, the student will be for sigma {settings.sigma:g}"
        )


def _takes_any_sigma(settings: TrainSettings) -> bool:
    method = registry().find("method", settings.method).value
    return bool(method(method_options(method, settings.options)).takes_any_sigma)


def refuse_over_teacher(out: Path, teachers: Iterable[Path]) -> None:
    """Raise UsageError if a run in ``out`` would be written over a teacher, by whatever name it is called.

    Links are followed, so that a directory, a file in it and links to either are the same place.
    """
    place = out.resolve()
    for path in teachers:
        for file in (path, path / "model.pt") if path.is_dir() else (path,):
            homes = {file.absolute(), file.resolve(), file.parent.resolve() / file.name}
            if any(place in (home, home.parent) for home in homes):
                raise UsageError(f"`out={out}` is where the teacher {path} lies, which it would destroy")


def watch_teacher(trainer: Trainer) -> float:
    """The teacher's noisy accuracy on test images, before it teaches; says it, and warns if it is a guess."""
    assert trainer.teacher is not None
    teacher, sigma = trainer.teacher, trainer.settings.sigma
    if _takes_any_sigma(trainer.settings):
        sigma = teacher.info.sigma or sigma
    found = trainer.noisy_accuracy(teacher.classifier, 0, sigma)
    console.note(f"the teacher's noisy accuracy on {found.images} test images: {100 * found.accuracy:.1f} %")
    if found.is_chance:
        console.warn(
            f"the teacher {teacher.path} is at chance under noise of sigma {sigma:g} "
            f"({100 * found.chance:.1f} % is always answering one class), so a student can learn nothing from it; "
            "is it the right file, sigma, `teacher_normalize`? smoothctl certify tells more"
        )
    return found.accuracy
