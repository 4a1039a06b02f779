"""From what people ask of a training run to the run: settings resolved, data opened, a directory filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from smoothctl.base import console
from smoothctl.base.devices import choose_device
from smoothctl.base.errors import UsageError
from smoothctl.base.settings import keyword_settings
from smoothctl.base.timing import describe, fastest
from smoothctl.hooks.datasets import Dataset, LabelledImages
from smoothctl.hooks.registry import registry
from smoothctl.hooks.trackers import Tracker
from smoothctl.images.datasets import default_split, known_shape, open_dataset
from smoothctl.images.settings import DataSource
from smoothctl.images.subset import labels_of, take_balanced
from smoothctl.models.checkpoint import Model, require_sigma
from smoothctl.models.classifier import build_classifier, canonical_arch
from smoothctl.records import cost
from smoothctl.records.cost import Cost, Link
from smoothctl.records.run_directory import RunDirectory
from smoothctl.training.batches import TrainingData
from smoothctl.training.distributed import join_group
from smoothctl.training.execution import Execution
from smoothctl.training.initial import check_initial, load_initial
from smoothctl.training.noisy_accuracy import run_is_at_chance
from smoothctl.training.precision import step_seconds
from smoothctl.training.recipes import Choice, resolve_settings
from smoothctl.training.run import fill_directory
from smoothctl.training.sanity_check import SanityCheck, plan_check
from smoothctl.training.settings import RunOptions, TeacherSettings, TrainSettings
from smoothctl.training.teacher import check_teacher, refuse_over_teacher
from smoothctl.training.trackers import find_trackers
from smoothctl.training.trainer import Estimate, Trainer

UNBALANCED = 3
"""How many times more images one class has than another where that is said."""


@dataclass(frozen=True)
class TrainedRun:
    """A run that is done: its directory, resolved settings, a line per epoch, and the runs that led to its teacher.

    ``leads`` is false in all but the first of several processes, which alone writes; ``data`` is where the dataset's
    files were said to be.
    """

    path: Path
    settings: TrainSettings
    epochs: tuple[dict[str, Any], ...]
    lineage: tuple[Link, ...] = ()
    leads: bool = True
    data: Path | None = None

    @property
    def noisy_accuracy(self) -> float:
        """Accuracy of the base classifier on test images under one draw of noise, after the last epoch."""
        return float(self.epochs[-1]["heldout_accuracy"])

    @property
    def at_chance(self) -> bool:
        """Whether it is hardly better than always answering one class."""
        return run_is_at_chance(self.epochs[-1])

    @property
    def cost(self) -> Cost:
        """What the run itself cost."""
        return cost.total(self.epochs)

    @property
    def lineage_seconds(self) -> float | None:
        """Seconds of this run and of all that led to its teacher; None where one is not on record."""
        before = cost.seconds(self.lineage)
        return None if before is None else before + self.cost.seconds


@dataclass(frozen=True)
class PlannedRun:
    """A run whose settings are resolved and whose data is open."""

    path: Path
    settings: TrainSettings
    choice: Choice
    data: TrainingData
    execution: Execution
    teacher: Model | None
    init: Model | None
    lineage: tuple[Link, ...]
    trackers: tuple[Tracker, ...]
    check: SanityCheck | None
    keep_every: int | None
    overwrite: bool
    place: Path | None

    def trainer(self) -> Trainer:
        """A trainer that has not begun."""
        return Trainer(self.settings, self.data, self.execution, self.teacher, self.init)

    def estimate(self) -> tuple[Trainer, Estimate]:
        """What the run may cost, from a few real steps; the trainer that took them is of no other use."""
        trainer = self.trainer()
        return trainer, trainer.estimate()

    def describe(self) -> str:
        """What will be trained, on what, and where it goes."""
        settings = self.settings
        return (
            f"{settings.method}: {settings.arch} on {settings.dataset} at sigma {settings.sigma:g}, "
            f"{settings.epochs} epochs, on {self.execution.where}, into {self.path}"
        )

    def start(self) -> TrainedRun:
        """Train, or resume what an interrupted run left."""
        about = {
            "recipe": self.choice.recipe.source,
            "data": str(self.place or ""),
            "images": len(self.data.train),
            "subset": getattr(self.data.train, "subset", ""),
            "lineage": [link.as_plain() for link in self.lineage],
        }
        history = fill_directory(
            self.settings, self.data, self.path, self.execution, teacher=self.teacher, overwrite=self.overwrite,
            about=about, trackers=self.trackers, check=self.check, init=self.init, keep_every=self.keep_every,
        )  # fmt: skip
        leads = self.execution.group.leads
        return TrainedRun(self.path, self.settings, tuple(history), self.lineage, leads, self.place)


@keyword_settings
def train(settings: TrainSettings, source: DataSource, run: RunOptions) -> TrainedRun:
    """Train a base classifier for randomized smoothing into a run directory.

    What is not given comes from the method's recipe for the dataset. The same call goes on with a run
    that was stopped. Raises UsageError for what cannot be trained so, and SmoothctlError if training fails.
    """
    require_no_teacher(settings.method)
    return plan_run(settings, source, run).start()


def require_no_teacher(method: str) -> None:
    """Raise UsageError for a method that cannot be used without a teacher."""
    if registry().find("method", method).value.needs_teacher:
        raise UsageError(f"`method={method}` needs a teacher; use: smoothctl transfer --teacher MODEL --student ARCH")


def plan_run(
    settings: TrainSettings,
    source: DataSource,
    run: RunOptions,
    teacher: Model | None = None,
    lineage: Sequence[Link] = (),
    teaching: TeacherSettings | None = None,
    teachers: Sequence[Path] = (),
) -> PlannedRun:
    """Resolve the settings and open the data; ``lineage`` are the runs that led to the teacher, ``teachers`` the
    places that were named as such."""
    plugins = registry()
    method = plugins.find("method", settings.method).value
    dataset: Dataset = plugins.find("dataset", settings.dataset).value
    init = None if run.init is None else load_initial(run.init, settings.given().get("arch"), settings.normalize)
    settings = _completed(settings, teacher, init, run.freeze)
    resolved, choice = resolve_settings(settings, method, dataset, run.recipe)
    # Aliases name the same thing, so they must not make other settings.
    noise = plugins.find("noise", resolved.noise)
    resolved = resolved.model_copy(update={"arch": canonical_arch(resolved.arch), "noise": noise.name})
    trackers = find_trackers(run.track)
    execution = _execution(run, teaching or TeacherSettings())
    resolved.check(execution.device.type)
    shape = wanted_shape(dataset, resolved.size, teacher)
    out = run.out or default_out(resolved)
    if teacher is not None:
        refuse_over_teacher(out, [*teachers, teacher.path])
    opened, images = open_dataset(dataset, "train", source.data, source.download, shape)
    if resolved.precision == "auto":
        resolved = _measured(resolved, opened, execution, None if run.overwrite else out)
    if teacher is not None:
        check_teacher(teacher, resolved, opened)
    split = default_split(dataset)
    _, heldout = open_dataset(dataset, split, source.data, source.download, opened.shape or None)
    if run.limit is not None:
        images = take_balanced(images, run.limit, resolved.seed)
    if execution.group.leads and not resolved.balanced:
        _tell_unbalanced(images, opened)
    data = TrainingData(opened, images, heldout, run.heldout_max, split)
    planned = PlannedRun(
        out, resolved, choice, data, execution, teacher, init, tuple(lineage), tuple(trackers),
        _check(run, resolved, teacher, known_shape(opened)), run.keep_every, run.overwrite, source.data,
    )  # fmt: skip
    if execution.group.leads:
        console.note(planned.describe())
        for line in choice.describe(resolved):
            console.note(line)
        if init is not None and run.recipe is None:
            console.note(
                "weights that were trained without noise become robust by: `method=gaussian` `recipe=finetune`"
            )
    return planned


def _tell_unbalanced(images: LabelledImages, dataset: Dataset) -> None:
    """Say so if a class has many times more images than another, where the source keeps its labels."""
    if not hasattr(images, "labels"):
        return
    counts = np.bincount(labels_of(images), minlength=len(dataset.class_names))
    if counts.max() >= UNBALANCED * max(1, counts.min()):
        console.note(
            f"classes have {counts.min()} to {counts.max()} images; `balanced` draws each equally often in an epoch"
        )


def _measured(settings: TrainSettings, dataset: Dataset, execution: Execution, resumed: Path | None) -> TrainSettings:
    """Settings with the precision that a run to resume has on record, else the fastest here, in every process."""
    found = None
    if execution.group.leads:
        there = None if resumed is None else RunDirectory(resumed).read_settings()
        if there is not None:
            found = there["settings"].get("precision")
            console.note(f"`precision=auto`: {found}, as the run in {resumed} has it")
        else:
            shape = known_shape(dataset)
            network = build_classifier(settings.arch, len(dataset.class_names), shape, settings.arch_options)
            seconds = step_seconds(network, shape, execution.device, settings.batch_size)
            found = fastest(seconds)
            told = describe(seconds)
            console.note(f"`precision=auto`: {found} (forward and backward pass of a small batch: {told})")
    return settings.model_copy(update={"precision": execution.group.from_leader(found)})


def _completed(settings: TrainSettings, teacher: Model | None, init: Model | None, freeze: bool) -> TrainSettings:
    """Settings with what is not given but decided: by the weights to start from, and by the teacher."""
    given = settings.given()
    if init is not None:
        given["arch"] = canonical_arch(given["arch"]) if given.get("arch") else init.info.arch
        check_initial(init, given["arch"])
        given["init_sha256"] = init.sha256
        if not given.get("arch_options"):
            given["arch_options"] = {name: str(value) for name, value in init.info.arch_options.items()}
    if freeze:
        given["lr_layers"] = 0.0
    if teacher is not None:
        given.setdefault("sigma", require_sigma(given.get("sigma"), teacher))
        given.setdefault("noise", teacher.info.noise)
        given["teacher_sha256"] = teacher.sha256
    return TrainSettings(**given)


def _check(
    run: RunOptions, settings: TrainSettings, teacher: Model | None, shape: tuple[int, int, int]
) -> SanityCheck | None:
    """The check of a student, at one sigma unless another radius is given; none for training without a teacher."""
    if not run.check_images or (run.check_radius is None and teacher is None):
        return None
    noise = registry().find("noise", settings.noise).value.at(shape)
    return plan_check(run.check_radius, run.check_images, settings.epochs, settings.sigma, noise)


def _execution(run: RunOptions, teaching: TeacherSettings) -> Execution:
    device = choose_device(run.device)
    return Execution(
        device,
        workers=run.workers,
        compile=run.compile,
        group=join_group(device, run.timeout),
        teacher_device=choose_device(teaching.teacher_device) if teaching.teacher_device else None,
        teacher=teaching,
    )


def wanted_shape(dataset: Dataset, size: int | None, teacher: Model | None) -> tuple[int, int, int] | None:
    """The shape to which image files are brought: --size, else the teacher's, else the dataset's own."""
    if size is not None:
        return (dataset.shape[0] if dataset.shape else 3), size, size
    return teacher.info.input_shape if teacher is not None and not dataset.shape else None


def default_out(settings: TrainSettings) -> Path:
    """``runs/digits-gaussian-resnet20-0.25``"""
    arch = settings.arch.replace("/", "-")
    return Path("runs") / f"{settings.dataset}-{settings.method}-{arch}-{settings.sigma:g}"
