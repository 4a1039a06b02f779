"""A trainer: a model, its data, and one epoch after another.

The engine owns order, noise, optimiser, schedule, precision, processes, logging and saving; a method
owns its loss. All randomness is keyed by (seed, epoch, step), so that going on after an interruption
needs no generator state and gives the weights that an uninterrupted run would have given.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from smoothctl.base.devices import evaluating, matmul_precision, versions
from smoothctl.base.draws import Draws
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.base.streams import Stream
from smoothctl.hooks.backends import Classifier
from smoothctl.hooks.methods import Batch, Method
from smoothctl.hooks.noises import Noise
from smoothctl.hooks.registry import provenance, registry
from smoothctl.images.batches import BatchReader, chunks
from smoothctl.images.datasets import known_shape
from smoothctl.models.checkpoint import Model, ModelInfo, lineage
from smoothctl.models.classifier import BaseClassifier, build_classifier, find_architecture
from smoothctl.models.normalization import Constants, of_dataset, read_normalize
from smoothctl.records.cost import PASSES
from smoothctl.smoothing.backends import make_ready
from smoothctl.training.batches import Batches, TrainingData, mix
from smoothctl.training.distributed import Share
from smoothctl.training.execution import Execution
from smoothctl.training.initial import set_training, start_from
from smoothctl.training.noisy_accuracy import NoisyAccuracy
from smoothctl.training.objective import Objective
from smoothctl.training.optimizer import Optimization
from smoothctl.training.passes import CountedModel, Passes
from smoothctl.training.settings import TrainSettings, method_options

EVALUATION_BATCH = 256
ESTIMATION_STEPS = 3


@dataclass(frozen=True)
class Estimate:
    """What a run may cost: seconds in all, and passes through the networks for each image of an epoch."""

    seconds: float
    passes: dict[str, float]


class Trainer:
    """One run: a model, its data and everything that a step needs."""

    def __init__(
        self,
        settings: TrainSettings,
        data: TrainingData,
        execution: Execution,
        teacher: Model | None = None,
        init: Model | None = None,
    ):
        if len(data.dataset.class_names) < 2:
            raise UsageError(f"dataset {data.dataset.name} has a single class; there is nothing to tell apart")
        plugins = registry()
        self.settings, self.data, self.teacher = settings, data, teacher
        self.execution, self.device, self.group = execution, execution.device, execution.group
        settings.check(self.device.type)
        method = plugins.find("method", settings.method)
        architecture = find_architecture(settings.arch)
        noise = plugins.find("noise", settings.noise)
        self.sources = [method, architecture, noise, plugins.find("dataset", data.dataset.name)]
        self.noise: Noise = noise.value
        _seed_torch(settings.seed, 0)
        dataset = data.dataset
        self.shape = known_shape(dataset)
        self.mean, self.std = self._constants(init)
        self.model: BaseClassifier = build_classifier(
            settings.arch,
            len(dataset.class_names),
            self.shape,
            settings.arch_options,
            self.mean,
            self.std,
            initial=True,
        ).to(self.device)
        self.fresh = start_from(self.model, init, len(dataset.class_names)) if init is not None else []
        self.model.to(memory_format=torch.channels_last)
        self.optimization = Optimization(self.model, settings, self.device, len(dataset.class_names))
        self.counted = CountedModel(self.model, settings.precision, execution.compile)
        own_method: Method = method.value(method_options(method.value, settings.options))
        self.objective: nn.Module = Objective(self.counted, own_method)
        if self.group.world > 1:
            self.objective = nn.parallel.DistributedDataParallel(self.objective)
        self.taught = None if teacher is None else self._ready(teacher)
        ask = None if self.taught is None else self._ask_teacher
        teacher_sigma = None if teacher is None else teacher.info.sigma
        self.batches = Batches(settings, data, self.noise, execution, ask, teacher_sigma)
        self.heldout = BatchReader(data.heldout, self.device, execution.workers, len(data.dataset.class_names))

    def _constants(self, init: Model | None) -> Constants:
        """Those of the normalization layer: as asked for, of the weights to start from, or the dataset's."""
        settings, dataset, channels = self.settings, self.data.dataset, self.shape[0]
        if settings.normalize:
            return read_normalize(settings.normalize, dataset, channels)
        if init is not None and len(init.info.mean) == channels:
            return tuple(init.info.mean), tuple(init.info.std)
        return of_dataset(dataset, channels)

    def _learn(self) -> None:
        """Put the model in train mode, and the counts of passes to zero."""
        set_training(self.model, self.settings.lr_layers == 0, len(self.data.dataset.class_names))
        self.counted.passes = Passes()

    def _ready(self, teacher: Model) -> Classifier:
        """The teacher, frozen and in eval mode, as fast as it can be evaluated."""
        execution = self.execution
        device = execution.teacher_device or self.device
        network = teacher.classifier.to(device)
        batch_size = self.settings.batch_size
        return make_ready(
            network,
            self.shape,
            device,
            batch_size,
            execution.teacher.teacher_precision,
            execution.teacher.teacher_backend,
        )

    @property
    def trained(self) -> BaseClassifier:
        """The model whose weights are saved and watched."""
        trained = self.optimization.trained
        assert isinstance(trained, BaseClassifier)
        return trained

    def run_epoch(self, epoch: int, advance: Callable[..., None]) -> dict[str, Any]:
        """Train for one epoch; return its line of the log.

        Raises SmoothctlError if the loss is not finite.
        """
        settings = self.settings
        _seed_torch(settings.seed, epoch + 1, self.group.rank)
        self._learn()
        start = time.perf_counter()
        sums: dict[str, Tensor] = {}
        for step, (share, batch) in enumerate(self.batches.of_epoch(epoch)):
            for name, value in self._step(share, batch, step).items():
                sums[name] = sums.get(name, torch.zeros((), device=self.device)) + value.detach() * share.counted
            advance(1, f"epoch {epoch + 1}/{settings.epochs}")
        totals = self.group.total(torch.stack(list(sums.values()))) / len(self.data.train)
        means = dict(zip(sums, totals.tolist(), strict=True))
        if not math.isfinite(means["loss"]):
            raise self._diverged(f"the loss is not finite in epoch {epoch + 1}", epoch)
        if wrong := [name for name, value in means.items() if not math.isfinite(value)]:
            raise SmoothctlError(f"method {settings.method} gave a part {wrong[0]} that is not finite, beside its loss")
        seconds = time.perf_counter() - start
        return {
            "epoch": epoch,
            "lr": settings.learning_rate(epoch),
            **means,
            "seconds": seconds,
            **self._count_passes(),
        }

    def _diverged(self, what: str, epoch: int) -> SmoothctlError:
        kept, where = "There is no good model yet", ""
        if epoch:
            kept, where = f"The model of epoch {epoch} is kept", ", with another `out` or `overwrite`"
        return SmoothctlError(
            f"{what}: training diverged. {kept}; try a smaller `lr` (now {self.settings.lr:g}), a `warmup_epochs`, or "
            f"`clip=1`{where}"
        )

    def _count_passes(self) -> dict[str, int]:
        passes = self.counted.passes
        counts = torch.tensor([passes.forward, passes.backward, passes.teacher], device=self.device)
        return dict(zip(PASSES, map(int, self.group.total(counts).tolist()), strict=True))

    def _step(self, share: Share, batch: Batch, step: int) -> dict[str, Tensor]:
        """One step of the optimiser; the loss and its parts.

        Processes average their gradients, so that each loss is weighted by its share of the batch.
        """
        settings = self.settings
        with matmul_precision(settings.precision == "tf32"):
            loss, parts = self.objective(batch)
            weight = share.counted * self.group.world / share.whole
            rate = settings.learning_rate(batch.epoch, step, self.batches.steps_per_epoch)
            self.optimization.step(loss if weight == 1 else loss * weight, rate)
        return {"loss": loss, **parts}

    def estimate(self) -> Estimate:
        """What all epochs may cost, from a few real steps, after which the model is of no use."""
        self._learn()
        seconds, images = [], 0
        for step, (share, batch) in enumerate(itertools.islice(self.batches.of_epoch(0), ESTIMATION_STEPS)):
            start = time.perf_counter()
            self._step(share, batch, step)
            seconds.append(time.perf_counter() - start)
            images += share.whole
        epochs = self.settings.epochs
        per_image = {name: count / images for name, count in self._count_passes().items()}
        return Estimate(min(seconds) * self.batches.steps_per_epoch * epochs, per_image)

    def _ask_teacher(self, x: Tensor) -> Tensor:
        """The teacher's logits, without gradients, on the student's device."""
        assert self.taught is not None
        self.counted.passes.teacher += len(x)
        logits = self.taught.logits(x.detach().to(self.execution.teacher_device or self.device))
        # A clone, since autograd takes no tensor that was made in inference mode.
        return logits.to(self.device).clone()

    def noisy_accuracy(self, model: nn.Module, epoch: int, sigma: float | None = None) -> NoisyAccuracy:
        """Accuracy of a base classifier on evenly spaced test images, with one noise sample each, of this sigma.

        Raises SmoothctlError for logits that are not finite, and for an image that cannot be read.
        """
        sigma = self.settings.sigma if sigma is None else sigma
        heldout, count = self.data.heldout, min(len(self.data.heldout), self.data.heldout_max)
        places = [len(heldout) * at // count for at in range(count)]
        right = torch.zeros((), device=self.device)
        labels = torch.zeros(len(self.data.dataset.class_names), device=self.device)
        with evaluating(model):
            for step, (x, y, _) in enumerate(self._read_heldout(places)):
                draws = Draws(self.settings.seed, epoch, Stream.EVALUATE, step, device=self.device)
                logits = model(self.noise.noisy(x, self.noise.sample(tuple(x.shape), sigma, draws), sigma))
                if not torch.isfinite(logits).all():
                    raise self._diverged(f"non-finite logits on test images after epoch {epoch + 1}", epoch)
                right += (logits.argmax(dim=1) == y).sum()
                labels.index_add_(0, y, torch.ones(len(y), device=self.device))
        return NoisyAccuracy(float(right) / count, float(labels.max()) / count, count)

    def _read_heldout(self, places: list[int]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        try:
            yield from self.heldout.read(chunks(places, EVALUATION_BATCH), 0)
        except SmoothctlError as error:
            raise SmoothctlError(
                f"the {self.data.heldout_split} split: {error}. No epoch is lost: the same command resumes"
            ) from None

    def state_dict(self) -> dict[str, Any]:
        """All that going on needs, apart from the lines of the epochs."""
        return {"network": self.model.network.state_dict(), "optimization": self.optimization.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        """Go on from a state; returns the lines of the epochs that led to it.

        Raises SmoothctlError for one that does not fit, as after a change of the network's code.
        """
        try:
            self.model.network.load_state_dict(state["network"])
            self.optimization.load_state_dict(state["optimization"])
        except MemoryError:
            raise
        except Exception as error:  # what optimisers raise has no end
            raise SmoothctlError(
                "the state for going on does not fit this network and optimiser, whose code may have changed since; "
                f"`overwrite` starts anew ({' '.join(str(error).split())[:120]})"
            ) from None
        history: list[dict[str, Any]] = state["history"]
        return history

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


def _seed_torch(seed: int, epoch: int, rank: int = 0) -> None:
    """Seed what draws from torch's global generator: initial weights, and dropout, which differs by process."""
    torch.manual_seed(mix(mix(seed, epoch), rank))
