"""Certification and prediction of a dataset's images: the plan, and the work that fills a log."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smoothctl import console, records
from smoothctl.api import ABSTAIN, Dataset, Event, LabelledImages, Noise
from smoothctl.certification import Certificate, cohen
from smoothctl.checkpoint import Model, check_classes, load_model, require_sigma
from smoothctl.composition import denoised
from smoothctl.config import CertifySettings, PredictSettings
from smoothctl.data import READ_ERRORS, fingerprint, image_id, open_dataset, to_pixels
from smoothctl.errors import SmoothctlError, UsageError
from smoothctl.foreign import Assumptions
from smoothctl.models import find_architecture
from smoothctl.plugins import Registered, provenance, registry
from smoothctl.prediction import Prediction, majority
from smoothctl.records import Writer, format_votes
from smoothctl.runtime import versions
from smoothctl.sampling import Decided, Rule, Sampler
from smoothctl.transforms import transform_of


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

    @property
    def copies(self) -> int:
        """Forward passes per image."""
        chosen = self.settings
        return chosen.n0 + chosen.n if isinstance(chosen, CertifySettings) else chosen.n

    def identity(self) -> dict[str, Any]:
        """Everything that decides the rows of the log, and so must agree to go on with one."""
        return {
            **self.settings.model_dump(mode="json"),
            "dataset": self.dataset.name,
            "split": self.split,
            "data": fingerprint(self.images),
            "transform": transform_of(self.images),
            "sigma": self.sigma,
            "noise": self.noise.name,
            "norm": self.noise.norm,
            "rule": "cohen" if isinstance(self.settings, CertifySettings) else "majority",
            "precision": "fp32",
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
            f"(idx {first}..{last} step {step}), {self.copies:,} forward passes each, {count * self.copies:,} in all"
        )

    def estimate(self, batch_size: int) -> float:
        """Seconds that the whole job may take, from a few real batches."""
        sampler: Sampler[Any] = self.sampler(batch_size)
        x = next(image for _, image in self.readable(self.indices, lambda *_: None))
        trial = max(batch_size, 100)
        seconds = math.inf
        for _ in range(2):
            start = time.perf_counter()
            list(sampler.run([(0, x)], lambda: majority(trial, 0.5)))
            seconds = min(seconds, time.perf_counter() - start)
        return seconds / trial * self.copies * len(self.indices)

    def sampler(self, batch_size: int, on_batch: Any = lambda copies: None) -> Sampler[Any]:
        return Sampler(
            self.model.classifier, self.noise, self.sigma, self.settings.seed, self.device, batch_size, on_batch
        )

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
    given: Assumptions | None = None,
    denoiser: Path | None = None,
) -> Job:
    """Load and check everything that a job needs, before any sampling.

    ``given`` says what a model file of other code does not; ``denoiser`` is put in front of the model.
    Raises UsageError for what does not fit together, and warns of a sigma that the model was not trained for.
    """
    settings.check_n()
    plugins = registry()
    given = replace(given or Assumptions(), noise=settings.noise)
    asked = plugins.find("dataset", settings.dataset) if settings.dataset else None
    if asked is not None:
        known = asked.value if asked.value.shape and asked.value.class_names else None
        split = settings.split or default_split(asked.value)
        given = replace(given, dataset=known or open_dataset(asked.value, split, data, download)[0])
    model = denoised(load_model(model_path, device, given), denoiser)
    entry = asked or plugins.find("dataset", model.info.dataset)
    split = settings.split or default_split(entry.value)
    dataset, images = open_dataset(entry.value, split, data, download, model.info.input_shape)
    check_classes(model, dataset.class_names, dataset.name)
    noise = plugins.find("noise", settings.noise or model.info.noise)
    sigma = require_sigma(settings.sigma, model)
    warn_mismatch(model, sigma, noise.name)
    return Job(
        model, dataset, images, settings.indices(len(images)), noise.value, sigma, settings, device,
        (entry, noise, find_architecture(model.info.arch)),
    )  # fmt: skip


def warn_mismatch(model: Model, sigma: float, noise: str) -> None:
    """Warn of noise that the model was not trained for."""
    trained = model.info.sigma
    if trained is not None and sigma != trained:
        how = f"for sigma {trained:g}" if trained else "without noise"
        console.warn(f"the model was trained {how}, here sigma is {sigma:g}")
    if noise != model.info.noise:
        console.warn(f"the model was trained under {model.info.noise} noise, here it is {noise}")


def run(job: Job, path: Path, batch_size: int, overwrite: bool = False) -> records.Log:
    """Decide every image that is not on record in the log yet; return the whole log.

    Raises UsageError if the log was made with other settings.
    """
    certifying = isinstance(job.settings, CertifySettings)
    columns = records.CERTIFY_COLUMNS if certifying else records.PREDICT_COLUMNS
    what = "certify" if certifying else "predict"
    with records.open_log(path, columns, job.identity(), job.about(), len(job.indices), overwrite) as log:
        todo = [index for index in job.indices if index not in log.done]
        if not todo:
            console.note(f"{path} is finished ({len(job.indices)} images with the same settings); nothing to do")
            return records.read_log(path)
        if log.done:
            console.note(f"going on with {path}: {len(log.done)} of {len(job.indices)} images are on record")
        _fill(job, log, todo, what, batch_size)
    return records.read_log(path)


def _fill(job: Job, log: Writer, todo: list[int], what: str, batch_size: int) -> None:
    plugins = registry()
    plugins.notify(Event(f"{what}.start", log.path, job.identity()))
    failures: list[int] = []

    def failed(index: int, reason: str) -> None:
        failures.append(index)
        console.warn(f"image {index}: {reason}")
        log.append(**_failed_cells(index, reason))

    with console.progress(what, len(todo) * job.copies) as advance:
        done = 0
        sampler = job.sampler(batch_size, lambda copies: advance(copies, f"{done}/{len(todo)} images"))
        for decided in sampler.run(job.readable(todo, failed), lambda: _rule(job)):
            cells = _cells(job, decided)
            log.append(**cells)
            done += 1
            plugins.notify(Event(f"{what}.image", log.path, cells))
    plugins.notify(Event(f"{what}.end", log.path, {"decided": done, "failed": len(failures)}))


def _rule(job: Job) -> Rule[Any]:
    settings = job.settings
    if isinstance(settings, CertifySettings):
        return cohen(job.noise, job.sigma, settings.n0, settings.n, settings.alpha)
    return majority(settings.n, settings.alpha)


def _cells(job: Job, decided: Decided[Any]) -> Mapping[str, Any]:
    outcome: Certificate | Prediction = decided.outcome
    label = int(job.images[decided.index][1])
    cells = {
        "idx": decided.index,
        "label": label,
        "predict": outcome.predict,
        "correct": int(outcome.predict == label),
        "time": f"{decided.seconds:.4f}",
        "top": outcome.top,
        "n": outcome.n,
        "votes": format_votes(outcome.votes),
        "image": image_id(job.images, decided.index),
        "status": "ok",
    }
    if isinstance(outcome, Certificate):
        return {
            **cells,
            "radius": outcome.radius,
            "p_lower": outcome.p_lower,
            "selection": format_votes(outcome.selection),
        }
    return {**cells, "p_value": outcome.p_value}


def _failed_cells(index: int, reason: str) -> Mapping[str, Any]:
    """A failed image counts as wrong for whoever reads the field's own columns; ``status`` says why."""
    nothing = dict.fromkeys(("votes", "selection", "image"), "")
    numbers = dict.fromkeys(("time", "radius", "p_lower", "p_value"), 0.0)
    return {
        "idx": index, "label": -1, "predict": ABSTAIN, "correct": 0, "top": -1, "n": 0,
        **nothing, **numbers, "status": reason,
    }  # fmt: skip


def require_no_failures(log: records.Log) -> None:
    """Raise SmoothctlError if images of a log failed."""
    failed = [row for row in log.rows if row.failed]
    if failed:
        raise SmoothctlError(
            f"{len(failed)} of {len(log.rows)} images failed, the first is idx {failed[0].idx} ({failed[0].status}); "
            "the others are on record, and the same command tries the failed ones again"
        )
