"""Training into a run directory, for every method; transfer is the same with a teacher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smoothctl.base import console, files
from smoothctl.base.devices import versions
from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.trackers import Tracker
from smoothctl.images.datasets import fingerprint, label_hash
from smoothctl.models.checkpoint import Model, save_model
from smoothctl.records.run_directory import KEPT_FILE, RunDirectory
from smoothctl.training.batches import TrainingData
from smoothctl.training.execution import Execution
from smoothctl.training.initial import tell_initial
from smoothctl.training.sanity_check import FRACTION, SanityCheck
from smoothctl.training.settings import TrainSettings
from smoothctl.training.teacher import watch_teacher
from smoothctl.training.trackers import telling
from smoothctl.training.trainer import Trainer

FAILED = "failed"
"""What the first process gives to the others, instead of a state, if it cannot begin."""


@dataclass(frozen=True)
class Extras:
    """What is done beside training: a sanity check, and a model file kept of every so many epochs."""

    check: SanityCheck | None = None
    keep_every: int | None = None


def fill_directory(
    settings: TrainSettings,
    data: TrainingData,
    out: Path,
    execution: Execution,
    *,
    teacher: Model | None = None,
    overwrite: bool = False,
    about: dict[str, Any] | None = None,
    trackers: Sequence[Tracker] = (),
    check: SanityCheck | None = None,
    init: Model | None = None,
    keep_every: int | None = None,
) -> list[dict[str, Any]]:
    """Train in a run directory, going on where an earlier run with the same settings stopped.

    Returns the lines of all epochs. Under torchrun every process calls it, and the first one writes; all
    return when it has written. Raises UsageError if ``out`` holds other settings.
    """
    trainer = Trainer(settings, data, execution, teacher, init)
    if init is not None and execution.group.leads:
        tell_initial(init, trainer.fresh)
    history = _train(trainer, RunDirectory(out), overwrite, about or {}, trackers, Extras(check, keep_every))
    execution.group.wait()
    return history


def _train(
    trainer: Trainer,
    run: RunDirectory,
    overwrite: bool,
    about: dict[str, Any],
    trackers: Sequence[Tracker],
    extras: Extras,
) -> list[dict[str, Any]]:
    settings, data, execution = trainer.settings, trainer.data, trainer.execution
    if not execution.group.leads:
        return _follow(trainer)
    identity = {**_on_record(settings), "data": fingerprint(data.train), "labels": label_hash(data.train)}
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
            console.note(f"{run.path} is finished ({settings.epochs} epochs with the same settings); nothing to do")
            return run.read_history()
        return _lead(run, state, trainer, trackers, extras)


def _on_record(settings: TrainSettings) -> dict[str, Any]:
    """Settings as plain data; those that came later are named only where they are used, so that older runs resume."""
    late = {"init_sha256", "lr_layers", "balanced"}
    defaults = {name for name in late if getattr(settings, name) == TrainSettings.model_fields[name].default}
    return settings.model_dump(mode="json", exclude=defaults)


def _lead(
    run: RunDirectory, state: dict[str, Any], trainer: Trainer, trackers: Sequence[Tracker], extras: Extras
) -> list[dict[str, Any]]:
    """Train, write and tell; alone, or as the first of several processes. An empty state starts from nothing."""
    settings = trainer.settings
    history: list[dict[str, Any]] = []
    if state:
        history = trainer.load_state_dict(state)
        console.note(f"going on with {run.path} after epoch {len(history)} of {settings.epochs}")
        if "heldout_accuracy" in history[-1]:
            _save(run, trainer, history)
    steps = (settings.epochs - len(history)) * trainer.batches.steps_per_epoch
    opening = {}
    if trainer.teacher is not None and not history:
        opening = {"teacher_accuracy": watch_teacher(trainer)}
    with telling(run.path, trackers) as tell, console.progress("train", steps) as advance:
        tell("train.start", settings.model_dump(mode="json"))
        if history and "heldout_accuracy" not in history[-1]:
            _conclude(run, trainer, history, extras, advance)
        for epoch in range(len(history), settings.epochs):
            history.append({**trainer.run_epoch(epoch, advance), **(opening if epoch == 0 else {})})
            run.save_state({**trainer.state_dict(), "history": history})
            _conclude(run, trainer, history, extras, advance)
            tell("train.epoch", history[-1])
        run.finish()
        tell("train.end", history[-1])
    return history


def _conclude(
    run: RunDirectory,
    trainer: Trainer,
    history: list[dict[str, Any]],
    extras: Extras,
    advance: Callable[..., None],
) -> None:
    """Measure the model of the last epoch, whose training is on disk already, and write model and log.

    Raises SmoothctlError for a test image that cannot be read, after which the same command resumes here.
    """
    line, settings = history[-1], trainer.settings
    line |= trainer.noisy_accuracy(trainer.trained, line["epoch"]).as_line()
    console.note(_epoch_line(line, settings.epochs))
    _save(run, trainer, history)
    done, check = line["epoch"] + 1, extras.check
    if extras.keep_every and done % extras.keep_every == 0:
        kept = run.path / KEPT_FILE.format(f"{done:03d}")
        save_model(kept, trainer.info(done), trainer.trained.network.state_dict())
    if check is not None and done in check.epochs:
        seconds = FRACTION * settings.epochs * line["seconds"]
        line |= check.run(trainer, seconds, lambda text: advance(0, text))
        _save(run, trainer, history)


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


def _epoch_line(line: dict[str, Any], epochs: int) -> str:
    return (
        f"epoch {line['epoch'] + 1}/{epochs}: loss {line['loss']:.4f}, noisy accuracy on test images "
        f"{100 * line['heldout_accuracy']:.1f} %, lr {line['lr']:g}, {console.duration(line['seconds'])}"
    )


def _save(run: RunDirectory, trainer: Trainer, history: list[dict[str, Any]]) -> None:
    """Put the state first: whatever a kill leaves undone after it, going on writes again."""
    run.save_state({**trainer.state_dict(), "history": history})
    save_model(run.model, trainer.info(len(history)), trainer.trained.network.state_dict())
    run.write_history(history)
