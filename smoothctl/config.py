"""Validated settings: flag > environment > TOML file > recipe > default.

The command line hands over what the user gave, by flag, environment variable
(``SMOOTHCTL_TRAIN_SIGMA``) or ``--config FILE.toml``; recipes and defaults fill the rest here.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from smoothctl.api import Dataset, Method, Recipe
from smoothctl.bounds import least_n_to_certify, least_n_to_predict
from smoothctl.errors import UsageError

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Index = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Probability = Annotated[float, Field(gt=0, lt=1)]
Radius = Annotated[float, Field(ge=0)]
Precision = Literal["fp32", "tf32", "bf16", "fp16"]
Backend = Literal["auto", "eager", "compile", "onnxruntime"]
Budget = Literal["precise", "balanced", "fast", "draft"]
Schedule = Literal["multistep", "cosine", "constant"]

DEFAULT_N = 100_000
# Early "no" makes images cheap, so the few that need it may use more: nothing is lost to the limit.
DEFAULT_N_RADII = 125_000
# Copies by which a pilot is extended whose votes are nearly unanimous.
PILOT_EXTENSION = 900


class Settings(BaseModel):
    """Settings of one command; unknown names and values out of range are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SubsetSettings(Settings):
    """Which images of a dataset: every ``every``-th from ``start`` up to ``stop``, at most ``max``."""

    dataset: str | None = None
    split: str | None = None
    start: Index = 0
    stop: Index | None = None
    every: Count = 1
    max: Count | None = None

    def indices(self, length: int) -> range:
        """The places chosen in a split of this length, in order.

        Raises UsageError if nothing is left.
        """
        chosen = range(self.start, min(length, length if self.stop is None else self.stop), self.every)
        chosen = chosen[: self.max]
        if not chosen:
            raise UsageError(
                f"--start {self.start}{'' if self.stop is None else f' --stop {self.stop}'} leaves no image of {length}"
            )
        return chosen


class SmoothingSettings(SubsetSettings):
    """Which noise, and how the base classifier is evaluated; None is what the model file says."""

    sigma: Positive | None = None
    noise: str | None = None
    precision: Precision = "fp32"
    backend: Backend = "auto"


class CertifySettings(SmoothingSettings):
    """What decides a certificate, apart from the model and the images."""

    n0: Count = 100
    n: Count | None = None
    alpha: Probability = 0.001
    seed: Seed = 0
    radii: tuple[Radius, ...] | None = None
    budget: Budget | None = None
    bound: Literal["binary", "multi"] = "binary"
    skip_misclassified: bool = False

    @model_validator(mode="after")
    def _fill_n(self) -> Self:
        if self.n is None:
            object.__setattr__(self, "n", DEFAULT_N_RADII if self.radii else DEFAULT_N)
        return self

    @property
    def rule(self) -> str:
        """The stopping rule, as logs name it."""
        return "radii" if self.radii else "budget" if self.budget else "cohen"

    @property
    def limit(self) -> int:
        """``n``, which is filled in when the settings are made."""
        assert self.n is not None
        return self.n

    @property
    def most_copies(self) -> int:
        """Forward passes that one image may take at most."""
        pilot = PILOT_EXTENSION if self.budget else 0
        return self.n0 + pilot + self.limit

    @property
    def likely_copies(self) -> int:
        """Forward passes that an image takes on average, roughly: stopping rules save most of them."""
        return self.n0 + self.limit // {"cohen": 1, "budget": 5, "radii": 50}[self.rule]

    def check(self) -> None:
        """Raise UsageError for settings that cannot go together, or an n that can never certify."""
        least = least_n_to_certify(self.alpha)
        if self.radii == ():
            raise UsageError("radii must not be empty")
        if self.limit < least:
            raise UsageError(f"--n {self.n} can never certify at alpha={self.alpha:g}; certify needs n>={least}")
        if self.radii and self.budget:
            raise UsageError("--radii and --budget are two stopping rules; choose one")
        if self.radii and self.bound != "binary":
            raise UsageError("--bound multi does not go with --radii, whose tests bound p_A alone")
        if self.radii and list(self.radii) != sorted(set(self.radii)):
            raise UsageError("--radii must rise, without repetition")


class PredictSettings(SmoothingSettings):
    """What decides a prediction, apart from the model and the images."""

    n: Count = 1000
    alpha: Probability = 0.001
    seed: Seed = 0

    rule: ClassVar[str] = "majority"

    @property
    def most_copies(self) -> int:
        """Forward passes per image."""
        return self.n

    likely_copies = most_copies

    def check(self) -> None:
        """Raise UsageError for an n that can never return a class at this alpha."""
        least = least_n_to_predict(self.alpha)
        if self.n < least:
            raise UsageError(f"--n {self.n} can never reach alpha={self.alpha:g}; predict needs n>={least}")


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


class TeacherSettings(Settings):
    """How a teacher is evaluated while a student learns from it."""

    precision: Precision = "fp32"
    backend: Backend = "auto"


T = TypeVar("T", bound=BaseModel)


def validated(model: type[T], values: Mapping[str, Any], prefix: str = "--") -> T:
    """Make settings; what is wrong becomes one UsageError line that names the flags."""
    try:
        return model(**values)
    except ValidationError as error:
        problems = [
            f"{prefix}{_flag(item['loc'])}: {item['msg'][:1].lower()}{item['msg'][1:]} (got {item['input']!r})"
            for item in error.errors()
        ]
        raise UsageError("; ".join(problems)) from None


def _flag(location: tuple[int | str, ...]) -> str:
    return str(location[0]).replace("_", "-") if location else ""


def choose_recipe(method: type[Method], dataset: Dataset, sigma: float | None) -> Recipe:
    """The method's published recipe for this dataset at the nearest sigma, over the dataset's own."""
    target = sigma if sigma is not None else (dataset.recipe.sigma or TrainSettings().sigma)
    published = [recipe for recipe in method.recipes if recipe.dataset == dataset.name]
    if not published:
        return dataset.recipe
    nearest = min(published, key=lambda recipe: abs((recipe.sigma or target) - target))
    merged = {**_stated(dataset.recipe), **_stated(nearest)}
    return Recipe(**merged)


def _stated(recipe: Recipe) -> dict[str, Any]:
    return {key: value for key, value in vars(recipe).items() if value is not None}


def train_settings(given: Mapping[str, Any], method: type[Method], dataset: Dataset) -> tuple[TrainSettings, Recipe]:
    """Fill what the user gave from the recipe and the defaults; also say which recipe it was."""
    recipe = choose_recipe(method, dataset, given.get("sigma"))
    layered = {key: value for key, value in _stated(recipe).items() if key in TrainSettings.model_fields}
    layered |= {key: value for key, value in given.items() if value is not None}
    layered |= {"method": method.name, "dataset": dataset.name}
    own = {**recipe.options, **given.get("options", {})}
    layered["options"] = method_options(method, own).model_dump(mode="json")
    return validated(TrainSettings, layered), recipe


def method_options(method: type[Method], values: Mapping[str, Any]) -> BaseModel:
    """A method's options from ``-o name=value`` texts; raises UsageError that lists what there is."""
    unknown = sorted(set(values) - set(method.Options.model_fields))
    if unknown:
        known = list(method.Options.model_fields)
        close = difflib.get_close_matches(unknown[0].lower(), known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}? Its options" if close else "its options"
        raise UsageError(f"method {method.name} has no option {unknown[0]!r}; {hint}: {', '.join(known) or 'none'}")
    return validated(method.Options, values, prefix="-o ")


def read_toml(path: Path, command: str) -> dict[str, Any]:
    """Defaults for one command: the file's top-level values, then those of its ``[command]`` table."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--config: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--config: {path} is not valid TOML: {error}") from None
    own = content.get(command, {})
    if not isinstance(own, dict):
        raise UsageError(f"--config: {path}: {command} is a table, [{command}], of that command's settings")
    values = {**{key: value for key, value in content.items() if not isinstance(value, dict)}, **own}
    return {key.replace("-", "_"): value for key, value in values.items()}
