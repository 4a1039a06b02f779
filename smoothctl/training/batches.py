"""Training images in batches of one optimiser step, with the random numbers that belong to each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from smoothctl.base.draws import Draws
from smoothctl.base.streams import Stream
from smoothctl.hooks.datasets import Dataset, LabelledImages
from smoothctl.hooks.methods import Batch
from smoothctl.hooks.noises import Noise
from smoothctl.images.batches import BatchReader, chunks
from smoothctl.images.resizing import FittedImages
from smoothctl.images.subset import labels_of
from smoothctl.training.distributed import Share
from smoothctl.training.execution import Execution
from smoothctl.training.settings import TrainSettings


@dataclass(frozen=True)
class TrainingData:
    """The images to train on, and those of a test split on which noisy accuracy is watched."""

    dataset: Dataset
    train: LabelledImages
    heldout: LabelledImages
    heldout_max: int = 1000
    heldout_split: str = "test"


class Batches:
    """The batches of a run: their order, this process's share of each, augmentation, noise, the teacher.

    Everything random is keyed by (seed, epoch, stream, step).
    """

    def __init__(
        self,
        settings: TrainSettings,
        data: TrainingData,
        noise: Noise,
        execution: Execution,
        teacher: Callable[[Tensor], Tensor] | None = None,
        teacher_sigma: float | None = None,
    ):
        self.settings, self.data, self.noise = settings, data, noise
        self.teacher, self.teacher_sigma = teacher, teacher_sigma
        self.device, self.group = execution.device, execution.group
        images = data.train
        if settings.augment and data.dataset.crop is not None and isinstance(images, FittedImages):
            images = dataclasses.replace(images, crop=data.dataset.crop)
        self.reader = BatchReader(images, self.device, execution.workers, len(data.dataset.class_names))
        self.labels = np.array(labels_of(data.train)) if settings.balanced else None

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps; the last batch of an epoch may be smaller."""
        return math.ceil(len(self.data.train) / self.settings.batch_size)

    def of_epoch(self, epoch: int) -> Iterator[tuple[Share, Batch]]:
        """This process's share of each batch of an epoch."""
        seed = self.settings.seed
        draws, count = Draws(seed, epoch, Stream.TRAIN_ORDER), len(self.data.train)
        order = draws.permutation(count) if self.labels is None else balanced_order(self.labels, draws)
        batches = chunks(order, self.settings.batch_size)
        shares = [self.group.share(batch) for batch in batches]
        own = [[batch[row] for row in share.rows] for batch, share in zip(batches, shares, strict=True)]
        read = self.reader.read(own, mix(seed, epoch))
        for step, (share, images) in enumerate(zip(shares, read, strict=True)):
            yield share, self._batch(share, *images, epoch, step)

    def _batch(self, share: Share, x: Tensor, y: Tensor, index: Tensor, epoch: int, step: int) -> Batch:
        settings = self.settings

        def draws(stream: Stream) -> Draws:
            return share.draws(Draws(settings.seed, epoch, stream, step, device=self.device))

        if settings.augment and self.data.dataset.augment is not None:
            x = self.data.dataset.augment(x, draws(Stream.TRAIN_AUGMENT))
        noise, uniform = draws(Stream.TRAIN_NOISE), draws(Stream.TRAIN_UNIFORM)
        return Batch(
            x, y, index, epoch, settings.epochs, settings.sigma,
            sample_noise=lambda shape: self.noise.sample(shape, settings.sigma, noise),
            sample_uniform=uniform.uniform,
            teacher=self.teacher, teacher_sigma=self.teacher_sigma, apply_noise=self.noise.apply,
        )  # fmt: skip


def balanced_order(labels: NDArray[np.int64], draws: Draws) -> Tensor:
    """As many places as there are labels, in random order, each class equally often, give or take one.

    Of a class with few images, each comes several times, and all of them before one comes again.
    """
    classes = np.unique(labels)
    more = set(draws.permutation(len(classes))[: len(labels) % len(classes)].tolist())
    places: list[Tensor] = []
    for number, label in enumerate(classes):
        own = torch.from_numpy(np.flatnonzero(labels == label))
        wanted = len(labels) // len(classes) + (number in more)
        rounds = [own[draws.permutation(len(own))] for _ in range(math.ceil(wanted / len(own)))]
        places += [torch.cat(rounds)[:wanted]] if rounds else []
    drawn = torch.cat(places)
    return drawn[draws.permutation(len(drawn))]


def mix(seed: int, number: int) -> int:
    """A seed for generators that take one number, from a seed and a number."""
    return (seed * 1_000_003 + number) % 2**63
