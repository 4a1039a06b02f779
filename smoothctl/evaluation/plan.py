"""Jobs: a dataset's images to be certified or predicted under a model, checked and planned."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from smoothctl.base import console
from smoothctl.base.devices import choose_device, versions
from smoothctl.base.errors import UsageError
from smoothctl.evaluation.classes import match_classes
from smoothctl.evaluation.classifier import ready
from smoothctl.hooks.backends import Classifier
from smoothctl.hooks.datasets import Dataset, LabelledImages
from smoothctl.hooks.noises import Noise, conversion
from smoothctl.hooks.registry import Registered, provenance, registry
from smoothctl.hooks.rules import Rule
from smoothctl.images.datasets import (
    READ_ERRORS,
    Reading,
    default_split,
    fingerprint,
    levels_of,
    open_dataset,
    read,
)
from smoothctl.images.resizing import transform_of
from smoothctl.images.settings import DataSource
from smoothctl.models.checkpoint import Model, load_model, require_sigma
from smoothctl.models.classifier import find_architecture
from smoothctl.models.composition import denoised
from smoothctl.models.import_checkpoint import assumptions
from smoothctl.models.settings import ModelSource
from smoothctl.records.log import read_sidecar
from smoothctl.smoothing.arithmetic import Arithmetic, arithmetic_for
from smoothctl.smoothing.backends import automatic_batch_size
from smoothctl.smoothing.enumeration import Enumeration
from smoothctl.smoothing.predict import MajorityVote, majority
from smoothctl.smoothing.procedure import Procedure
from smoothctl.smoothing.sampling import Sampler
from smoothctl.smoothing.settings import Computing, Smoothing


@dataclass(frozen=True)
class Job:
    """A model, the images that it is to decide, and the settings that decide them, with nothing left open.

    ``rule`` makes the rule of an image with a label.
    """

    model: Model
    dataset: Dataset
    images: LabelledImages
    indices: range
    noise: Noise
    sigma: float
    settings: Smoothing
    procedure: Procedure | MajorityVote | Enumeration
    device: torch.device
    sources: tuple[Registered, ...]
    classifier: Classifier
    batch_size: int
    levels: int | None
    rule: Callable[[int], Rule[Any]]

    def identity(self) -> dict[str, Any]:
        """Everything that decides the rows of the log, and so must agree to go on with one."""
        return {
            **self.settings.model_dump(mode="json"),
            **self.procedure.record(),
            "dataset": self.dataset.name,
            "split": self.split,
            "data": fingerprint(self.images),
            "transform": transform_of(self.images),
            "sigma": self.sigma,
            "noise": self.noise.name,
            "norm": self.norm,
            "arithmetic": self.arithmetic.name,
            "backend": self.classifier.backend,
            "device": self.device.type,
            "model": self.model.sha256,
        }

    @property
    def arithmetic(self) -> Arithmetic:
        return arithmetic_for(self.noise, self.sigma, self.levels)

    @property
    def norm(self) -> str:
        """The norm of radii: the noise's, or that to which they are converted."""
        return self.procedure.norm or self.noise.norm

    @property
    def split(self) -> str:
        return self.settings.split or default_split(self.dataset)

    def about(self) -> dict[str, Any]:
        """What the log records besides: it does not decide the rows."""
        info = self.model.info
        return {
            "model": {"path": str(self.model.path), **info.model_dump(mode="json", exclude={"versions", "plugins"})},
            "class_names": list(self.dataset.class_names),
            "distance": self.arithmetic.distance(math.prod(info.input_shape)),
            "subset": getattr(self.images, "subset", ""),
            **self.procedure.about(),
            "plugins": provenance(self.sources),
            "versions": versions(),
        }

    def plan(self) -> str:
        """Say which images it is about and what they cost."""
        first, last, step = self.indices[0], self.indices[-1], self.indices.step
        count = len(self.indices)
        return (
            f"{count} of {len(self.images)} images of {self.dataset.name} {self.split} "
            f"(idx {first}..{last} step {step}){self._brought_to}, "
            f"{self._at_most}{self.procedure.most_samples:,} forward passes each, "
            f"{'' if self.procedure.fixed_n else 'about '}{count * self.procedure.likely_samples:,} in all"
            f"{self._converted}"
        )

    @property
    def _converted(self) -> str:
        told = conversion(self.noise.norm, self.norm, math.prod(self.model.info.input_shape))
        return f"; {told}" if told else ""

    @property
    def _brought_to(self) -> str:
        how = transform_of(self.images)
        return f", brought to {how}" if how else ""

    @property
    def _at_most(self) -> str:
        return "" if self.procedure.fixed_n else "at most "

    def estimate(self) -> float:
        """Seconds that the whole job may take on average, from a few real batches."""
        sampler: Sampler[Any] = self.sampler()
        x = next(iter(self.readable(self.indices, lambda *_: None))).x
        trial = max(self.batch_size, 100)
        seconds = math.inf
        for _ in range(2):
            start = time.perf_counter()
            list(sampler.run([(0, x)], lambda index: majority(trial, 0.5)))
            seconds = min(seconds, time.perf_counter() - start)
        return seconds / trial * self.procedure.likely_samples * len(self.indices)

    def sampler(self, on_batch: Callable[[int], None] = lambda samples: None) -> Sampler[Any]:
        """A sampler for this job's model and noise."""
        return Sampler(
            self.classifier, self.noise, self.sigma, self.settings.seed, self.device, self.batch_size, on_batch,
            self.levels, self.model.classifier,
        )  # fmt: skip

    def readable(self, indices: Iterable[int], on_failure: Callable[[int, str], None]) -> Iterator[Reading]:
        """The images that can be read, each once; ``on_failure(index, reason)`` is told of the others."""
        for index in indices:
            try:
                reading = read(self.images, index)
            except READ_ERRORS as error:
                on_failure(index, f"failed: {type(error).__name__}: {' '.join(str(error).split())}")
                continue
            if tuple(reading.x.shape) != self.model.info.input_shape:
                raise UsageError(
                    f"image {index} has shape {tuple(reading.x.shape)}, the model takes {self.model.info.input_shape}"
                )
            yield reading


def prepare(
    model_path: Path,
    settings: Smoothing,
    procedure: Procedure | MajorityVote,
    source: DataSource,
    given: ModelSource,
    computing: Computing,
    recorded: Path,
) -> Job:
    """Load and check everything that a job needs, before any sampling.

    ``recorded``: the log whose precision and backend are taken where the settings leave them open, if it is there.
    Raises UsageError for what does not fit together, and warns of a sigma that the model was not trained for.
    """
    plugins = registry()
    device = choose_device(computing.device)
    assumed = assumptions(given, noise=settings.noise)
    asked = plugins.find("dataset", settings.dataset) if settings.dataset else None
    if asked is not None:
        known = asked.value if asked.value.shape and asked.value.class_names else None
        split = settings.split or default_split(asked.value)
        opened = known or open_dataset(asked.value, split, source.data, source.download, size=given.size)[0]
        assumed = replace(assumed, dataset=opened)
    model = denoised(load_model(model_path, device, assumed), given.denoiser, settings.sigma)
    entry = asked or plugins.find("dataset", model.info.dataset)
    split = settings.split or default_split(entry.value)
    shape = model.info.input_shape
    dataset, images = open_dataset(entry.value, split, source.data, source.download, shape)
    dataset, images = match_classes(model, dataset, images)
    entry_of_noise = plugins.find("noise", settings.noise or model.info.noise)
    noise: Noise = entry_of_noise.value.at(shape)
    sigma = require_sigma(settings.sigma, model)
    warn_mismatch(model, sigma, noise.name)
    indices = settings.indices(len(images))
    size = computing.batch_size or automatic_batch_size(shape, device)
    levels = levels_of(images)
    arithmetic = arithmetic_for(noise, sigma, levels)
    rule = procedure.rules(arithmetic, math.prod(shape))
    decided = procedure.over(arithmetic, math.prod(shape)) if arithmetic.values else procedure
    passes = decided.likely_samples * len(indices)
    settings, classifier = ready(model, settings, device, size, passes, recorded)
    sources = (entry, entry_of_noise, find_architecture(model.info.arch))
    return Job(
        model, dataset, images, indices, noise, sigma, settings, decided, device, sources, classifier, size,
        levels, rule,
    )  # fmt: skip


def warn_other_function(classifier: Classifier, certified: Path) -> None:
    """Warn if a log certified the model in another precision or backend: strictly, that is another function."""
    there = read_sidecar(certified).get("settings", {})
    for key in ("precision", "backend"):
        here = getattr(classifier, key)
        if there.get(key, here) != here:
            console.warn(
                f"{certified} was certified with {key} {there[key]}, this predicts with {here}; auto takes the same"
            )


def warn_mismatch(model: Model, sigma: float, noise: str) -> None:
    """Warn of noise that the model was not trained for."""
    trained = model.info.sigma
    if trained is not None and sigma != trained:
        how = f"for sigma {trained:g}" if trained else "without noise"
        console.warn(f"the model was trained {how}, here sigma is {sigma:g}")
    if noise != model.info.noise:
        console.warn(f"the model was trained under {model.info.noise} noise, here it is {noise}")
