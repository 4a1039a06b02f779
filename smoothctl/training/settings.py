"""Everything that decides the weights of a trained model, and where it comes from."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import Count, Index, Positive, Seed, Settings, validated
from smoothctl.hooks.methods import Method
from smoothctl.smoothing.settings import Precision

Schedule = Literal["multistep", "cosine", "constant"]


class TrainSettings(Settings):
    """Everything that decides the weights of a trained model."""

    method: str = "gaussian"
    options: dict[str, Any] = Field(default_factory=dict)
    arch: str = "resnet20"
    arch_options: dict[str, str] = Field(default_factory=dict)
    dataset: str = "digits"
    noise: str = "gaussian"
    sigma: Positive = 0.25
    epochs: Count = 90
    batch_size: Count = 128
    lr: Positive = 0.1
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    weight_decay: Annotated[float, Field(ge=0)] = 1e-4
    milestones: tuple[Index, ...] | None = None
    gamma: Positive = 0.1
    schedule: Schedule = "multistep"
    warmup_epochs: Index = 0
    optimizer: str = "sgd"
    nesterov: bool = False
    clip: Positive | None = None
    ema: Annotated[float, Field(gt=0, lt=1)] | None = None
    precision: Precision = "fp32"
    augment: bool = True
    normalize: str | None = None
    size: Count | None = None
    seed: Seed = 0
    teacher_sha256: str | None = None
    init_sha256: str | None = None
    lr_layers: Annotated[float, Field(ge=0, le=1)] = 1.0

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
            raise UsageError(f"--precision {self.precision} needs a GPU; on a CPU there are fp32 and bf16")
        if self.nesterov and self.optimizer != "sgd":
            raise UsageError(f"--nesterov belongs to --optimizer sgd, not to {self.optimizer}")
        if self.nesterov and not self.momentum:
            raise UsageError("--nesterov needs a --momentum above 0")


def method_options(method: type[Method], values: Mapping[str, Any]) -> BaseModel:
    """A method's options from ``-o name=value`` texts; raises UsageError that lists what there is."""
    unknown = sorted(set(values) - set(method.Options.model_fields))
    if unknown:
        known = list(method.Options.model_fields)
        close = difflib.get_close_matches(unknown[0].lower(), known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}? Its options" if close else "its options"
        raise UsageError(f"method {method.name} has no option {unknown[0]!r}; {hint}: {', '.join(known) or 'none'}")
    return validated(method.Options, values, prefix="-o ")
