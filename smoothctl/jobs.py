"""Jobs: a dataset's images to be certified or predicted under a model, checked and planned."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smoothctl import console
from smoothctl.api import Dataset, LabelledImages, Noise
from smoothctl.certification import rule_maker
from smoothctl.checkpoint import Model, check_classes, load_model
from smoothctl.config import CertifySettings, PredictSettings
from smoothctl.data import fingerprint, open_split, to_pixels
from smoothctl.errors import UsageError
from smoothctl.inference import Classifier, automatic_batch_size, make_ready
from smoothctl.plugins import Registered, provenance, registry
from smoothctl.prediction import majority
from smoothctl.runtime import versions
from smoothctl.sampling import Rule, Sampler

# From so many forward passes on, exporting the network to a faster runtime pays.
WORTH_EXPORTING = 100_000
READ_ERRORS = (OSError, SyntaxError, ValueError, EOFError)


@dataclass(frozen=True)
class Job:
    """A model, the images that it is to decide, and the settings that decide them."""

    model: Model
    dataset: Dataset
    images: LabelledImages
    indices: range
    noise: Noise
    sigma: float
    settings: CertifySettings | PredictSettings
    device: torch.device
    sources: tuple[Registered, ...]
    classifier: Classifier
    batch_size: int

    def identity(self) -> dict[str, Any]:
        """Everything that decides the rows of the log, and so must agree to go on with one."""
        return {
            **self.settings.model_dump(mode="json"),
            "dataset": self.dataset.name,
            "split": self.split,
            "data": fingerprint(self.images),
            "sigma": self.sigma,
            "noise": self.noise.name,
            "norm": self.noise.norm,
            "rule": self.settings.rule,
            "backend": self.classifier.backend,
            "device": self.device.type,
            "model": self.model.sha256,
        }

    @property
    def split(self) -> str:
        return self.settings.split or default_split(self.dataset)

    def about(self) -> dict[str, Any]:
        """What the log records besides: it does not decide the rows."""
        info = self.model.info
        return {
            "model": {"path": str(self.model.path), **info.model_dump(mode="json", exclude={"versions", "plugins"})},
            "class_names": list(self.dataset.class_names),
            "plugins": provenance(self.sources),
            "versions": versions(),
        }

    def plan(self) -> str:
        """Say which images it is about and what they cost."""
        first, last, step = self.indices[0], self.indices[-1], self.indices.step
        count = len(self.indices)
        return (
            f"{count} of {len(self.images)} images of {self.dataset.name} {self.split} "
            f"(idx {first}..{last} step {step}), {self._at_most}{self.settings.most_copies:,} forward passes each, "
            f"{count * self.settings.most_copies:,} in all"
        )

    @property
    def _at_most(self) -> str:
        return "" if self.settings.rule in ("cohen", "majority") else "at most "

    def estimate(self) -> float:
        """Seconds that the whole job may take, from a few real batches."""
        sampler: Sampler[Any] = self.sampler()
        x = next(image for _, image in self.readable(self.indices, lambda *_: None))
        trial = max(self.batch_size, 100)
        seconds = math.inf
        for _ in range(2):
            start = time.perf_counter()
            list(sampler.run([(0, x)], lambda index: majority(trial, 0.5)))
            seconds = min(seconds, time.perf_counter() - start)
        return seconds / trial * self.settings.most_copies * len(self.indices)

    def sampler(self, on_batch: Callable[[int], None] = lambda copies: None) -> Sampler[Any]:
        """A sampler for this job's model and noise."""
        seed = self.settings.seed
        return Sampler(self.classifier, self.noise, self.sigma, seed, self.device, self.batch_size, on_batch)

    def rule(self) -> Callable[[int], Rule[Any]]:
        """The stopping rule, by an image's index."""
        settings = self.settings
        if isinstance(settings, CertifySettings):
            make = rule_maker(settings, self.noise, self.sigma)
            return lambda index: make(int(self.images[index][1]))
        return lambda index: majority(settings.n, settings.alpha)

    def readable(self, indices: Any, on_failure: Any) -> Iterator[tuple[int, Tensor]]:
        """The images that can be read; ``on_failure(index, reason)`` is told of the others."""
        for index in indices:
            try:
                image, _ = self.images[index]
            except READ_ERRORS as error:
                on_failure(index, f"failed: {type(error).__name__}: {' '.join(str(error).split())}")
                continue
            x = to_pixels(image, f"image {index}")
            if tuple(x.shape) != self.model.info.input_shape:
                raise UsageError(
                    f"image {index} has shape {tuple(x.shape)}, the model takes {self.model.info.input_shape}"
                )
            yield index, x


def default_split(dataset: Dataset) -> str:
    """The split that is certified unless another is asked for."""
    return "test" if "test" in dataset.splits else dataset.splits[-1]


def prepare(
    model_path: Path,
    settings: CertifySettings | PredictSettings,
    *,
    data: Path | None,
    device: torch.device,
    download: bool = False,
    batch_size: int | None = None,
) -> Job:
    """Load and check everything that a job needs, before any sampling.

    Raises UsageError for what does not fit together, and warns of a sigma that the model was not trained for.
    """
    settings.check()
    plugins = registry()
    model = load_model(model_path, device)
    dataset = plugins.find("dataset", settings.dataset or model.info.dataset)
    check_classes(model, dataset.value.class_names, dataset.name)
    noise = plugins.find("noise", settings.noise or model.info.noise)
    sigma = settings.sigma if settings.sigma is not None else model.info.sigma
    warn_mismatch(model, sigma, noise.name)
    images = open_split(dataset.value, settings.split or default_split(dataset.value), data, download)
    indices = settings.indices(len(images))
    shape = model.info.input_shape
    size = batch_size or automatic_batch_size(shape, device)
    backend = settings.backend
    if backend == "auto" and settings.most_copies * len(indices) < WORTH_EXPORTING:
        backend = "eager"
    classifier = make_ready(model.classifier, shape, device, size, settings.precision, backend)
    sources = (dataset, noise, plugins.find("architecture", model.info.arch))
    return Job(model, dataset.value, images, indices, noise.value, sigma, settings, device, sources, classifier, size)


def warn_mismatch(model: Model, sigma: float, noise: str) -> None:
    """Warn of noise that the model was not trained for."""
    if sigma != model.info.sigma:
        console.warn(f"the model was trained for sigma {model.info.sigma:g}, here sigma is {sigma:g}")
    if noise != model.info.noise:
        console.warn(f"the model was trained under {model.info.noise} noise, here it is {noise}")
