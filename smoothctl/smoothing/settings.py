"""Settings of certification and prediction: which images, which noise, how sure, when to stop."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import Count, Index, Positive, Probability, Radius, Seed, Settings
from smoothctl.smoothing.bounds import least_n_to_certify, least_n_to_predict

Precision = Literal["fp32", "tf32", "bf16", "fp16"]
Backend = Literal["auto", "eager", "compile", "onnxruntime"]
Budget = Literal["precise", "balanced", "fast", "draft"]

DEFAULT_N = 100_000
# Early "no" makes images cheap, so the few that need it may use more: nothing is lost to the limit.
DEFAULT_N_RADII = 125_000
# Copies by which a pilot is extended whose votes are nearly unanimous.
PILOT_EXTENSION = 900


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


class TeacherSettings(Settings):
    """How a teacher is evaluated while a student learns from it."""

    precision: Precision = "fp32"
    backend: Backend = "auto"
