"""Everything that decides the weights of a trained model, and how a run is computed and watched."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from smoothctl.base.errors import UsageError
from smoothctl.base.names import did_you_mean
from smoothctl.base.peers import TIMEOUT, Timeout
from smoothctl.base.settings import Count, Index, Option, Pairs, Seed, Settings, listed, validated
from smoothctl.hooks.defaults import DATASET, METHOD, NOISE, TRANSFER_METHOD
from smoothctl.hooks.methods import Method
from smoothctl.hooks.recipes import MODEL, RUNNING, TrainingFields
from smoothctl.models.settings import arch_option, normalize_option
from smoothctl.smoothing.settings import AUTO, Precision


class TrainSettings(TrainingFields):
    """Everything that decides the weights of a trained model."""

    method: Annotated[str, Option("Training objective; `smoothctl plugins` lists them.")] = METHOD
    dataset: Annotated[str, Option("Dataset; `smoothctl plugins` lists them.")] = DATASET
    noise: Annotated[str, Option("Noise; `smoothctl plugins` lists them.", panel=RUNNING)] = NOISE
    arch_options: Annotated[Pairs, arch_option(MODEL)] = Field(default_factory=dict)
    normalize: Annotated[str | None, normalize_option(MODEL, "the dataset's")] = None
    size: Annotated[
        Count | None,
        Option("Side in pixels to which image files are brought, before noise.", panel="Images"),
    ] = None
    seed: Annotated[Seed, Option("Seed of all randomness.", panel=RUNNING)] = 0
    teacher_sha256: str | None = None
    init_sha256: str | None = None

    def learning_rate(self, epoch: int, step: int = 0, steps: int = 1) -> float:
        """The learning rate at a step (from 0, of ``steps``) of an epoch (from 0).

        ``multistep``: times gamma at the start of each milestone, or without milestones at one half and
        three quarters of the epochs, but never in the first epoch nor twice at once. ``cosine``: half a cosine wave
        down to zero. Both are multiplied by a factor that grows linearly to one during the warm-up epochs.
        """
        done = epoch + step / steps
        rate = self.lr * min(1.0, (epoch * steps + step + 1) / (max(1, self.warmup_epochs * steps)))
        if self.schedule == "constant":
            return rate
        if self.schedule == "cosine":
            return rate * (1 + math.cos(math.pi * done / self.epochs)) / 2
        drops = self.milestones
        if drops is None:
            drops = (max(1, self.epochs // 2), max(2, self.epochs * 3 // 4))
        return rate * self.gamma ** sum(epoch >= drop for drop in drops)

    def check(self, device: str) -> None:
        """Raise UsageError for settings that cannot go together, or not on this kind of device."""
        if device == "cpu" and self.precision in ("tf32", "fp16"):
            raise UsageError(f"`precision={self.precision}` needs a GPU; on a CPU there are fp32 and bf16")
        if self.nesterov and self.optimizer != "sgd":
            raise UsageError(f"`nesterov` belongs to `optimizer=sgd`, not to {self.optimizer}")
        if self.nesterov and not self.momentum:
            raise UsageError("`nesterov` needs a `momentum` above 0")


class TransferSettings(TrainSettings):
    """Everything that decides a student; what is empty comes from the teacher."""

    arch: Annotated[str, Option("Architecture of the student.", ("--student",), metavar="ARCH")] = ""
    method: Annotated[str, Option("Training objective that uses a teacher.")] = TRANSFER_METHOD
    dataset: Annotated[str, Option("Dataset.", default="the teacher's")] = ""


START = "Weights to start from"


class RunOptions(Settings):
    """What a training run starts from, and how it is computed and watched."""

    init: Annotated[
        Path | None,
        Option(
            "Start from the weights of a run or model file, third-party ones too; a last layer for other classes is "
            "replaced.",
            metavar="MODEL", panel=START,
        ),
    ] = None  # fmt: skip
    freeze: Annotated[bool, Option("Train the last layer only.", panel=START)] = False
    limit: Annotated[
        Count | None,
        Option("Train on at most so many images, as many of each class as there are.", panel="Images"),
    ] = None
    keep_every: Annotated[
        Count | None, Option("Keep a model file of every K-th epoch in the run.", metavar="K", panel="Watching")
    ] = None
    recipe: Annotated[
        str | None,
        Option(
            "A recipe of the method by its name; `smoothctl plugins METHOD` lists them.",
            metavar="NAME", default="the one for the dataset and sigma",
        ),
    ] = None  # fmt: skip
    heldout_max: Annotated[
        Count, Option("Images of the test split on which noisy accuracy is watched.", panel="Watching")
    ] = 1000
    check_radius: Annotated[
        Annotated[float, Field(ge=0)] | None,
        Option(
            "Measure certified accuracy at this radius on a few test images after the first epoch, and again after a "
            "tenth of them.",
            metavar="R", default="sigma for transfer, none for train", panel="Watching",
        ),
    ] = None  # fmt: skip
    check_images: Annotated[Index, Option("Images of that check; 0 leaves it out.", panel="Watching")] = 200
    track: Annotated[
        tuple[str, ...],
        Option(
            "Follow the run elsewhere too, such as in tensorboard or wandb.",
            metavar="NAME", panel="Watching", repeated=True,
        ),
    ] = ()  # fmt: skip
    workers: Annotated[Index, Option("Processes that load images which do not fit in memory.", panel=RUNNING)] = 0
    device: Annotated[str, Option("auto, cpu, cuda, cuda:INDEX or mps.", panel=RUNNING)] = "auto"
    compile: Annotated[bool, Option("Compile the network with torch.compile.", panel=RUNNING)] = False
    timeout: Timeout = TIMEOUT
    out: Annotated[Path | None, Option("Run directory.", metavar="DIR", default="a name below runs/")] = None
    overwrite: Annotated[bool, Option("Start anew, replacing what is there.", panel="Output")] = False


class TeacherSource(Settings):
    """Who teaches, and which architectures learn one after the other."""

    teacher: Annotated[
        tuple[Path, ...],
        Option(
            "Robust model file or run directory; several are averaged into one teacher. Repeatable.",
            metavar="MODEL", repeated=True,
        ),
    ] = ()  # fmt: skip
    chain: Annotated[
        tuple[str, ...],
        BeforeValidator(listed),
        Option(
            "Several students, each taught by the one before; --out holds a run directory for each.",
            metavar="ARCH,ARCH,...",
        ),
    ] = ()  # fmt: skip
    teacher_from: Annotated[
        Path | None,
        Option(
            "No teacher at hand: first train one by these settings of `smoothctl train`.",
            metavar="FILE.toml", panel="Teacher",
        ),
    ] = None  # fmt: skip
    teacher_arch: Annotated[
        str | None, Option("Architecture of a teacher whose file does not say it.", panel="Teacher")
    ] = None
    teacher_normalize: Annotated[
        str | None, Option("Its normalization layer, as --normalize of certify.", panel="Teacher")
    ] = None
    state_key: Annotated[
        str | None,
        Option("Where in the teacher's file the weights are, such as ema.state_dict.", metavar="KEY", panel="Teacher"),
    ] = None


class TeacherSettings(Settings):
    """How a teacher is evaluated while a student learns from it."""

    teacher_device: Annotated[
        str | None, Option("Device of the teacher.", default="the student's", panel="Teacher")
    ] = None
    teacher_precision: Annotated[Precision, Option("Of the teacher: fp32, tf32, bf16 or fp16.", panel="Teacher")] = (
        "fp32"
    )
    teacher_backend: Annotated[
        str, Option("How the teacher is evaluated, as --backend of certify.", panel="Teacher")
    ] = AUTO


def method_options(method: type[Method], values: Mapping[str, Any]) -> BaseModel:
    """A method's options from ``-o name=value`` texts; raises UsageError that lists what there is."""
    unknown = sorted(set(values) - set(method.Options.model_fields))
    if unknown:
        known = list(method.Options.model_fields)
        hint = did_you_mean(unknown[0], known, 1)
        there = f"{hint} Its options" if hint else "its options"
        separator = "." if hint else ";"
        raise UsageError(
            f"method {method.name} has no option {unknown[0]!r}{separator} {there}: {', '.join(known) or 'none'}"
        )
    return validated(method.Options, values, shown=lambda name: f"-o {name}")
