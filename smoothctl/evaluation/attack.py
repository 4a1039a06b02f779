"""Attacks within and beyond certified radii: PGD on the averaged softmax, decided by PREDICT.

Cohen et al. 2019 (section 4) and Salman et al. 2019 attack smoothed classifiers to see how far above the certified
radius the real one lies.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smoothctl.base import console
from smoothctl.base.draws import Draws
from smoothctl.base.errors import UsageError
from smoothctl.base.settings import keyword_settings
from smoothctl.base.streams import Stream
from smoothctl.evaluation.plan import Job, prepare
from smoothctl.evaluation.settings import AttackSettings, LogOptions
from smoothctl.hooks.defaults import BACKEND
from smoothctl.hooks.rules import Rule
from smoothctl.images.datasets import Reading
from smoothctl.images.settings import DataSource
from smoothctl.models.settings import ModelSource
from smoothctl.records.attacks import ATTACK_COLUMNS, AttackLog, attack_path, read_attack_log
from smoothctl.records.log import default_log, read_log
from smoothctl.records.writer import Writer, open_log
from smoothctl.smoothing.predict import Prediction, majority, resolve_vote
from smoothctl.smoothing.sampling import Sampler
from smoothctl.smoothing.settings import Computing, PredictSettings
from smoothctl.toolkit.attacks import pgd

# Norms end this much (relatively) below what they may be, so that rounding takes none across the radius.
ROUNDING = 1e-6
SAME = ("model", "data", "dataset", "split", "transform", "sigma", "noise", "precision")
"""What a certificate and an attack on it must agree on."""


@dataclass(frozen=True)
class Attack:
    """A planned attack: the model and its images, and the radii that were certified, by index."""

    job: Job
    settings: AttackSettings
    certified: Path
    certificate: Mapping[str, Any]
    radii: Mapping[int, float]
    eligible: int

    @property
    def passes(self) -> tuple[int, int]:
        """Forward and backward passes for one image."""
        own = self.settings
        backward = own.steps * own.samples * len(own.multiples)
        return backward + own.n * len(own.multiples), backward

    def identity(self) -> dict[str, Any]:
        """Everything that decides the rows of the log."""
        own = self.settings.model_dump(mode="json", exclude={"certified"})
        job = self.job.identity()
        return {**own, **{name: job[name] for name in (*SAME, "device")}, "certificate": dict(self.certificate)}

    def plan(self) -> str:
        """Say what is attacked and what it costs."""
        forward, backward = self.passes
        count = len(self.radii)
        return (
            f"{count} of {self.eligible} images certified in {self.certified}, at "
            f"{', '.join(f'{multiple:g}' for multiple in self.settings.multiples)} times the radius; "
            f"{forward * count:,} forward and {backward * count:,} backward passes in all"
        )

    def run(self, path: Path, overwrite: bool = False) -> AttackLog:
        """Attack every image that is not on record in the log yet; return the whole log."""
        about = {**self.job.about(), "eligible": self.eligible, "certified": str(self.certified)}
        with open_log(path, ATTACK_COLUMNS, self.identity(), about, list(self.radii), overwrite) as log:
            todo = [index for index in self.radii if index not in log.done]
            log.note_progress(len(log.done), len(self.radii))
            self._fill(log, todo)
        return read_attack_log(path)

    def _fill(self, log: Writer, todo: list[int]) -> None:
        nothing = dict.fromkeys(("label", "radius", "forward_passes", "backward_passes", "time"), 0)

        def failed(index: int, reason: str) -> None:
            console.warn(f"image {index}: {reason}")
            log.append(**{**nothing, "idx": index, "norms": "", "predictions": "", "image": "", "status": reason})

        sampler: Sampler[Prediction] = replace(self.job.sampler(), levels=None)
        with console.progress("attack", len(todo)) as advance:
            for done, reading in enumerate(self.job.readable(todo, failed), start=1):
                log.append(**self._attacked(reading, sampler))
                advance(1, f"{done}/{len(todo)} images")

    def _attacked(self, reading: Reading, sampler: Sampler[Prediction]) -> dict[str, Any]:
        """The row of one image: an attack for each multiple of its radius."""
        start = time.perf_counter()
        own, job = self.settings, self.job
        x = reading.x.to(job.device).unsqueeze(0)
        draws = Draws(own.seed, reading.index, Stream.ATTACK, device=job.device)
        noise = job.noise.sample((own.samples, *reading.x.shape), job.sigma, draws)
        norms, predictions = [], []
        for multiple in own.multiples:
            epsilon = multiple * self.radii[reading.index] * (1 - ROUNDING)
            found = self._pgd(x, reading.label, noise, epsilon)
            norms.append(float(torch.linalg.vector_norm(found.double() - x.double())))
            decided = next(iter(sampler.run([(reading.index, found[0].cpu())], self._decide)))
            predictions.append(decided.outcome.predict)
        forward, backward = self.passes
        return {
            "idx": reading.index, "label": reading.label, "radius": self.radii[reading.index],
            "norms": " ".join(map(repr, norms)), "predictions": " ".join(map(str, predictions)),
            "forward_passes": forward, "backward_passes": backward, "time": f"{time.perf_counter() - start:.4f}",
            "image": reading.name, "status": "ok",
        }  # fmt: skip

    def _pgd(self, x: Tensor, label: int, noise: Tensor, epsilon: float) -> Tensor:
        own, job = self.settings, self.job
        y = torch.tensor([label], device=job.device)
        return pgd(job.model.classifier, x, y, noise, epsilon, own.steps, own.step_size, job.batch_size).detach()

    def _decide(self, index: int) -> Rule[Prediction]:
        return majority(self.settings.n, self.settings.alpha)


def plan_attack(
    model: Path, settings: AttackSettings, source: DataSource, given: ModelSource, computing: Computing
) -> Attack:
    """Load and check everything that an attack needs.

    Raises UsageError unless there is a finished certification log of this model on these images, with L2 radii.
    """
    settings.check()
    certified = settings.certified or default_log(model, "certify")
    if not certified.exists():
        raise UsageError(f"attack reads certified radii, and {certified} is not there: run smoothctl certify {model}")
    log = read_log(certified)
    if log.kind != "certify" or log.settings is None:
        raise UsageError(f"`certified={certified}`: not a certification log with its settings beside it")
    if log.incomplete:
        raise UsageError(f"{certified} is unfinished ({len(log)} of {log.planned} images); finish certify first")
    there = log.settings
    names = ("dataset", "split", "sigma", "noise", "precision")
    asked = PredictSettings(
        n=settings.n, alpha=settings.alpha, seed=settings.seed, backend=BACKEND,
        **{name: there[name] for name in names if there.get(name) is not None},
    )  # fmt: skip
    job = prepare(model, asked, resolve_vote(asked), source, given, computing, certified)
    here = job.identity()
    if other := [name for name in SAME if there.get(name) != here[name]]:
        raise UsageError(f"{certified} was made with another {' and '.join(other)}; certify this model anew")
    if (norm := there.get("norm", job.noise.norm)) != "l2":
        raise UsageError(f"attack searches in L2, and {certified} has radii in {norm}")
    radii = {row.idx: row.radius for row in log.rows if row.correct and row.radius}
    if not radii:
        raise UsageError(f"{certified} certifies no image for its label; there is nothing to attack")
    chosen = dict(list(radii.items())[: settings.max])
    return Attack(job, settings, certified, there, chosen, len(radii))


@keyword_settings
def attack(
    model: Path | str,
    settings: AttackSettings,
    source: DataSource,
    given: ModelSource,
    computing: Computing,
    log: LogOptions,
) -> AttackLog:
    """Attack the images that a model's certification log certifies for their label, at multiples of their radii.

    PGD on the averaged softmax (Salman et al. 2019); what an attacked image is, ``predict`` decides. Within the radius
    an attack succeeds with probability at most the sum of both alphas. Resumes its log. Raises UsageError if the
    model has no finished certification log.
    """
    planned = plan_attack(Path(model), settings, source, given, computing)
    return planned.run(log.out or attack_path(planned.certified), log.overwrite)
