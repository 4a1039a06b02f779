"""The training loop, for every method; transfer is the same loop with a teacher.

The engine owns order, noise, optimiser, schedule, logging and saving; a method owns its loss. All
randomness is keyed by (seed, epoch, step), so that going on after an interruption needs no
generator state and gives the weights that an uninterrupted run would have given.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from smoothctl import console, outputs
from smoothctl.api import Batch, Dataset, Event, LabelledImages, Method, Noise
from smoothctl.checkpoint import Ancestor, Model, ModelInfo, save_model
from smoothctl.config import TrainSettings, method_options
from smoothctl.data import BatchReader, chunks, fingerprint, known_shape
from smoothctl.draws import Draws, Stream
from smoothctl.errors import SmoothctlError, UsageError
from smoothctl.models import build_classifier, find_architecture
from smoothctl.normalization import of_dataset, read_normalize
from smoothctl.plugins import provenance, registry
from smoothctl.rundir import RunDirectory
from smoothctl.runtime import evaluating, versions

EVALUATION_BATCH = 256
ESTIMATION_STEPS = 3


@dataclass(frozen=True)
class TrainingData:
    """The images to train on, and the held-out images on which accuracy under noise is watched."""

    dataset: Dataset
    train: LabelledImages
    heldout: LabelledImages
    heldout_max: int = 1000


class Objective(nn.Module):
    """The loss as a module: one forward per step, whatever the method does inside."""

    def __init__(self, model: nn.Module, method: Method):
        super().__init__()
        self.model, self.method = model, method

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        result = self.method.loss(self.model, batch)
        return result if isinstance(result, tuple) else (result, {})


class Trainer:
    """One run: a model, its data and everything that a step needs."""

    def __init__(
        self,
        settings: TrainSettings,
        data: TrainingData,
        device: torch.device,
        teacher: Model | None = None,
        workers: int = 0,
    ):
        plugins = registry()
        self.settings, self.data, self.device, self.teacher = settings, data, device, teacher
        method = plugins.find("method", settings.method)
        architecture = find_architecture(settings.arch)
        noise = plugins.find("noise", settings.noise)
        self.sources = [method, architecture, noise, plugins.find("dataset", data.dataset.name)]
        self.noise: Noise = noise.value
        _seed_torch(settings.seed, 0)
        dataset = data.dataset
        self.shape = known_shape(dataset)
        self.mean, self.std = (
            read_normalize(settings.normalize, dataset, self.shape[0])
            if settings.normalize
            else of_dataset(dataset, self.shape[0])
        )
        self.model = build_classifier(
            settings.arch,
            len(dataset.class_names),
            self.shape,
            settings.arch_options,
            self.mean,
            self.std,
            initial=True,
        ).to(device)
        own_method: Method = method.value(method_options(method.value, settings.options))
        self.objective = Objective(self.model, own_method)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), settings.lr, settings.momentum, weight_decay=settings.weight_decay
        )
        self.reader = BatchReader(data.train, device, workers)
        self.heldout = BatchReader(data.heldout, device, workers)

    def run_epoch(self, epoch: int, advance: Callable[..., None]) -> dict[str, Any]:
        """Train for one epoch; return its line of the log.

        Raises SmoothctlError if the loss is not finite.
        """
        settings = self.settings
        _seed_torch(settings.seed, epoch + 1)
        rate = settings.learning_rate(epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.model.train()
        start = time.perf_counter()
        totals: dict[str, Tensor] = {}
        for step, (x, y, index) in enumerate(self._batches(epoch)):
            loss, parts = self._step(self._batch(x, y, index, epoch, step))
            for name, value in {"loss": loss, **parts}.items():
                totals[name] = totals.get(name, torch.zeros((), device=self.device)) + value.detach() * len(x)
            advance(1, f"epoch {epoch + 1}/{settings.epochs}")
        means = {name: float(total) / len(self.data.train) for name, total in totals.items()}
        if not math.isfinite(means["loss"]):
            raise SmoothctlError(
                f"the loss is not finite in epoch {epoch + 1}: training diverged. The last good model is kept; "
                f"try a smaller --lr (now {rate:g})"
            )
        seconds = time.perf_counter() - start
        return {
            "epoch": epoch,
            "lr": rate,
            **means,
            "heldout_accuracy": self._heldout_accuracy(epoch),
            "seconds": seconds,
        }

    def _batches(self, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        settings = self.settings
        order = Draws(settings.seed, epoch, Stream.TRAIN_ORDER).permutation(len(self.data.train))
        return self.reader.read(chunks(order, settings.batch_size), _mix(settings.seed, epoch))

    def _step(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        loss, parts = self.objective(batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss, parts

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps; the last batch of an epoch may be smaller."""
        return math.ceil(len(self.data.train) / self.settings.batch_size)

    def estimate(self) -> float:
        """Seconds that all epochs may take, from a few real steps, after which the model is of no use."""
        self.model.train()
        seconds = []
        for step, batch in enumerate(itertools.islice(self._batches(0), ESTIMATION_STEPS)):
            start = time.perf_counter()
            self._step(self._batch(*batch, 0, step))
            seconds.append(time.perf_counter() - start)
        return min(seconds) * self.steps_per_epoch * self.settings.epochs

    def _batch(self, x: Tensor, y: Tensor, index: Tensor, epoch: int, step: int) -> Batch:
        settings = self.settings
        if settings.augment and self.data.dataset.augment is not None:
            x = self.data.dataset.augment(
                x, Draws(settings.seed, epoch, Stream.TRAIN_AUGMENT, step, device=self.device)
            )
        draws = Draws(settings.seed, epoch, Stream.TRAIN_NOISE, step, device=self.device)
        return Batch(
            x, y, index, epoch, settings.epochs,
            sample_noise=lambda shape: self.noise.sample(shape, settings.sigma, draws),
            teacher=None if self.teacher is None else self._ask_teacher,
        )  # fmt: skip

    @torch.no_grad()
    def _ask_teacher(self, x: Tensor) -> Tensor:
        assert self.teacher is not None
        logits: Tensor = self.teacher.classifier(x)
        return logits

    def _heldout_accuracy(self, epoch: int) -> float:
        """Accuracy of the base classifier on held-out images, one noisy copy each."""
        count = min(len(self.data.heldout), self.data.heldout_max)
        right = torch.zeros((), device=self.device)
        with evaluating(self.model):
            for step, (x, y, _) in enumerate(self.heldout.read(chunks(range(count), EVALUATION_BATCH), 0)):
                draws = Draws(self.settings.seed, epoch, Stream.EVALUATE, step, device=self.device)
                logits = self.model(x + self.noise.sample(tuple(x.shape), self.settings.sigma, draws))
                if not torch.isfinite(logits).all():
                    raise SmoothctlError(
                        f"non-finite logits on held-out images after epoch {epoch + 1}: training diverged. "
                        "The last good model is kept; try a smaller --lr"
                    )
                right += (logits.argmax(dim=1) == y).sum()
        return float(right) / count

    def info(self, epochs: int) -> ModelInfo:
        """What the model file says of itself after so many epochs."""
        settings, dataset = self.settings, self.data.dataset
        return ModelInfo(
            arch=settings.arch,
            arch_options=settings.arch_options,
            class_names=list(dataset.class_names),
            input_shape=self.shape,
            mean=list(self.mean),
            std=list(self.std),
            noise=settings.noise,
            sigma=settings.sigma,
            method=settings.method,
            method_options=settings.options,
            dataset=dataset.name,
            seed=settings.seed,
            epochs=epochs,
            lineage=lineage(self.teacher),
            plugins=provenance(self.sources),
            versions=versions(),
        )


def lineage(teacher: Model | None) -> list[Ancestor]:
    """The chain of teachers, oldest first."""
    if teacher is None:
        return []
    own = Ancestor(sha256=teacher.sha256, **teacher.info.model_dump(include={"arch", "method", "sigma", "dataset"}))
    return [*teacher.info.lineage, own]


def check_teacher(teacher: Model, settings: TrainSettings, dataset: Dataset) -> None:
    """Raise UsageError for a teacher that cannot teach here; warn if it was trained for another sigma."""
    info = teacher.info
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
    *,
    device: torch.device,
    teacher: Model | None = None,
    workers: int = 0,
    overwrite: bool = False,
    about: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Train in a run directory, going on where an earlier run with the same settings stopped.

    Returns the lines of all epochs. Raises UsageError if ``out`` holds other settings.
    """
    run = RunDirectory(out)
    trainer = Trainer(settings, data, device, teacher, workers)
    identity = {**settings.model_dump(mode="json"), "data": fingerprint(data.train)}
    context = {"device": str(device), "versions": versions(), **(about or {})}
    with outputs.exclusive(run.settings):
        if run.begin(identity, context, overwrite):
            console.note(f"{out} is finished ({settings.epochs} epochs with the same settings); nothing to do")
            return run.read_history()
        return _train(run, trainer)


def _train(run: RunDirectory, trainer: Trainer) -> list[dict[str, Any]]:
    settings, plugins = trainer.settings, registry()
    history: list[dict[str, Any]] = []
    if (state := run.load_state()) is not None:
        trainer.model.network.load_state_dict(state["network"])
        trainer.optimizer.load_state_dict(state["optimizer"])
        history = state["history"]
        console.note(f"going on with {run.path} after epoch {len(history)} of {settings.epochs}")
        _save(run, trainer, history)
    plugins.notify(Event("train.start", run.path, settings.model_dump(mode="json")))
    steps = (settings.epochs - len(history)) * trainer.steps_per_epoch
    with console.progress("train", steps) as advance:
        for epoch in range(len(history), settings.epochs):
            history.append(trainer.run_epoch(epoch, advance))
            _save(run, trainer, history)
            plugins.notify(Event("train.epoch", run.path, history[-1]))
    run.finish()
    plugins.notify(Event("train.end", run.path, history[-1]))
    return history


def _save(run: RunDirectory, trainer: Trainer, history: list[dict[str, Any]]) -> None:
    """Put the state first: whatever a kill leaves undone after it, going on writes again."""
    network = trainer.model.network.state_dict()
    run.save_state({"network": network, "optimizer": trainer.optimizer.state_dict(), "history": history})
    save_model(run.model, trainer.info(len(history)), network)
    run.write_history(history)


def _seed_torch(seed: int, epoch: int) -> None:
    """Seed what draws from torch's global generator: initial weights, dropout."""
    torch.manual_seed(_mix(seed, epoch))


def _mix(seed: int, epoch: int) -> int:
    return (seed * 1_000_003 + epoch) % 2**63
