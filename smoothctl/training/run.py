"""Training into a run directory, for every method; transfer is the same with a teacher."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import nn

from smoothctl.base import console, files
from smoothctl.base.devices import versions
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.trackers import Tracker
from smoothctl.images.datasets import fingerprint, label_hash
from smoothctl.models.checkpoint import Model, save_model
from smoothctl.records.run_directory import RunDirectory
from smoothctl.training.batches import TrainingData
from smoothctl.training.execution import Execution
from smoothctl.training.sanity_check import EarlyCheck
from smoothctl.training.settings import TrainSettings
from smoothctl.training.trackers import telling
from smoothctl.training.trainer import Trainer

FAILED = "failed"
"""What the first process gives to the others, instead of a state, if it cannot begin."""


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
    if info.sigma is not None and info.sigma != settings.sigma:
        console.warn(
            f"the teacher was trained for sigma {info.sigma:g}, the student will be for sigma {settings.sigma:g}"
        )


def train(
    settings: TrainSettings,
    data: TrainingData,
    out: Path,
    execution: Execution,
    *,
    teacher: Model | None = None,
    overwrite: bool = False,
    about: dict[str, Any] | None = None,
    trackers: Sequence[Tracker] = (),
    check: EarlyCheck | None = None,
) -> list[dict[str, Any]]:
    """Train in a run directory, going on where an earlier run with the same settings stopped.

    Returns the lines of all epochs. Under torchrun every process calls it, and the first one writes; all
    return when it has written. Raises UsageError if ``out`` holds other settings.
    """
    history = _train(settings, data, out, execution, teacher, overwrite, about or {}, trackers, check)
    execution.group.wait()
    return history


def _train(
    settings: TrainSettings,
    data: TrainingData,
    out: Path,
    execution: Execution,
    teacher: Model | None,
    overwrite: bool,
    about: dict[str, Any],
    trackers: Sequence[Tracker],
    check: EarlyCheck | None,
) -> list[dict[str, Any]]:
    run = RunDirectory(out)
    trainer = Trainer(settings, data, execution, teacher)
    if not execution.group.leads:
        return _follow(trainer)
    identity = {**settings.model_dump(mode="json"), "data": fingerprint(data.train), "labels": label_hash(data.train)}
    context = {**execution.about(), "versions": versions(), **about}
    with ExitStack() as held:
        try:
            held.enter_context(files.exclusive(run.settings))
            state = None if run.begin(identity, context, overwrite) else run.load_state() or {}
        except (SmoothctlError, OSError):
            execution.group.from_leader(FAILED)
            raise
        execution.group.from_leader(state)
        if state is None:
            console.note(f"{out} is finished ({settings.epochs} epochs with the same settings); nothing to do")
            return run.read_history()
        return _lead(run, state, trainer, trackers, check)


def _lead(
    run: RunDirectory, state: dict[str, Any], trainer: Trainer, trackers: Sequence[Tracker], check: EarlyCheck | None
) -> list[dict[str, Any]]:
    """Train, write and tell; alone, or as the first of several processes. An empty state starts from nothing."""
    settings = trainer.settings
    history: list[dict[str, Any]] = []
    if state:
        history = trainer.load_state_dict(state)
        console.note(f"going on with {run.path} after epoch {len(history)} of {settings.epochs}")
        _save(run, trainer, history)
    steps = (settings.epochs - len(history)) * trainer.batches.steps_per_epoch
    with telling(run.path, trackers) as tell, console.progress("train", steps) as advance:
        tell("train.start", settings.model_dump(mode="json"))
        for epoch in range(len(history), settings.epochs):
            history.append(trainer.run_epoch(epoch, advance))
            console.note(_epoch_line(history[-1], settings.epochs))
            if check is not None and epoch + 1 in check.epochs:
                history[-1] |= _look(check, trainer)
            _save(run, trainer, history)
            tell("train.epoch", history[-1])
        run.finish()
        tell("train.end", history[-1])
    return history


def _follow(trainer: Trainer) -> list[dict[str, Any]]:
    """Train as one of torchrun's other processes, which write and say nothing."""
    state = trainer.group.from_leader(None)
    if state == FAILED:
        raise SmoothctlError("this process stops too, since the first one could not begin")
    if state is None:
        return []
    history = trainer.load_state_dict(state) if state else []
    return history + [
        trainer.run_epoch(epoch, lambda *_: None) for epoch in range(len(history), trainer.settings.epochs)
    ]


def _look(check: EarlyCheck, trainer: Trainer) -> dict[str, Any]:
    """Certified accuracy of the student, and of its teacher, for the log; says it too."""
    settings, heldout = trainer.settings, trainer.data.heldout
    count = len(check.places(len(heldout)))

    def measure(model: nn.Module) -> float:
        return check.certified_accuracy(model, heldout, settings.sigma, settings.noise)

    found = {"check_radius": check.radius, "certified_accuracy": measure(trainer.trained)}
    told = f"certified at {check.radius:g} on {count} held-out images: {100 * found['certified_accuracy']:.1f} %"
    if trainer.teacher is not None:
        found["teacher_certified_accuracy"] = measure(trainer.teacher.classifier)
        told += f", the teacher {100 * found['teacher_certified_accuracy']:.1f} %"
    console.note(told)
    return found


def _epoch_line(line: dict[str, Any], epochs: int) -> str:
    return (
        f"epoch {line['epoch'] + 1}/{epochs}: loss {line['loss']:.4f}, accuracy under noise on held-out images "
        f"{100 * line['heldout_accuracy']:.1f} %, lr {line['lr']:g}, {console.duration(line['seconds'])}"
    )


def _save(run: RunDirectory, trainer: Trainer, history: list[dict[str, Any]]) -> None:
    """Put the state first: whatever a kill leaves undone after it, going on writes again."""
    run.save_state({**trainer.state_dict(), "history": history})
    save_model(run.model, trainer.info(len(history)), trainer.trained.network.state_dict())
    run.write_history(history)
