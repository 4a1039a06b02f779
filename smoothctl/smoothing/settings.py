"""Settings of certification and prediction: which images, which noise, how sure, when to stop."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import Count, Index, Option, Positive, Probability, Radii, Seed, Settings

Precision = Literal["fp32", "tf32", "bf16", "fp16"]
Backend = Literal["auto", "eager", "compile", "onnxruntime"]
Budget = Literal["precise", "balanced", "fast", "draft"]

IMAGES, RUNNING = "Images", "Running"
DEFAULT_N = 100_000
# Stopping for futility makes images cheap, so the few that need it may use more: nothing is lost to the limit.
DEFAULT_N_RADII = 125_000
# Noise samples by which a pilot is extended whose votes are nearly unanimous.
PILOT_EXTENSION = 900


class Subset(Settings):
    """Which images of a dataset: every ``every``-th from ``start`` up to ``stop``, at most ``max``."""

    dataset: Annotated[
        str | None, Option("Dataset; `smoothctl plugins` lists them.", default="the model's", panel=IMAGES)
    ] = None
    split: Annotated[str | None, Option("Split of the dataset.", default="test", panel=IMAGES)] = None
    start: Annotated[Index, Option("Index of the first image.", panel=IMAGES)] = 0
    stop: Annotated[Index | None, Option("Index before which to stop.", panel=IMAGES)] = None
    every: Annotated[
        Count,
        Option("Take every K-th image (`--skip` is read alike).", ("--every", "--skip"), metavar="K", panel=IMAGES),
    ] = 1
    max: Annotated[Count | None, Option("At most so many images.", panel=IMAGES)] = None

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


class Smoothing(Subset):
    """Which noise, how sure, and how the base classifier is evaluated; None is what the model file says."""

    alpha: Annotated[Probability, Option("Probability of being wrong, per image; between 0 and 1.")] = 0.001
    sigma: Annotated[
        Positive | None,
        Option("Scale of the noise, in units of pixels in [0,1]; above 0.", default="the model's"),
    ] = None
    noise: Annotated[
        str | None, Option("Noise; `smoothctl plugins` lists them.", default="the model's", panel=RUNNING)
    ] = None
    seed: Annotated[Seed, Option("Seed of all randomness.", panel=RUNNING)] = 0
    precision: Annotated[Precision, Option("fp32, tf32, bf16 or fp16; logs record it.", panel=RUNNING)] = "fp32"
    backend: Annotated[
        Backend,
        Option(
            "auto, eager, compile or onnxruntime; auto takes ONNX Runtime for large jobs on a CPU if it is installed "
            "and agrees with PyTorch.",
            panel=RUNNING,
        ),
    ] = "auto"


class CertifySettings(Smoothing):
    """What decides a certificate, apart from the model and the images."""

    n0: Annotated[Count, Option("Noise samples that select the class; at least 1.", panel=RUNNING)] = 100
    n: Annotated[
        Count | None,
        Option(
            "Fresh noise samples that estimate p_A; with --radii or --budget, the most that one image may use.",
            default="100000; 125000 with --radii",
        ),
    ] = None
    radii: Annotated[
        Radii | None,
        Option(
            "Ask only which of these radii are proved: the same guarantee with far fewer samples.", metavar="R,R,..."
        ),
    ] = None
    budget: Annotated[
        Budget | None, Option("Choose n per image from a pilot: precise, balanced, fast or draft.", panel=RUNNING)
    ] = None
    bound: Annotated[
        Literal["binary", "multi"],
        Option("binary, or multi: bound the runner-up too, which can certify p_A < 1/2.", panel=RUNNING),
    ] = "binary"
    skip_misclassified: Annotated[
        bool,
        Option(
            "For evaluation: stop after selection if the class is not the label, which certified accuracy and ACR "
            "cannot notice.",
            panel=RUNNING,
        ),
    ] = False

    def model_post_init(self, context: object) -> None:
        if self.n is None:
            object.__setattr__(self, "n", DEFAULT_N_RADII if self.radii else DEFAULT_N)

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
    def most_samples(self) -> int:
        """Forward passes that one image may take at most."""
        pilot = PILOT_EXTENSION if self.budget else 0
        return self.n0 + pilot + self.limit

    @property
    def likely_samples(self) -> int:
        """Forward passes that an image takes on average, roughly: stopping rules save most of them."""
        return self.n0 + self.limit // {"cohen": 1, "budget": 5, "radii": 50}[self.rule]

    def check(self) -> None:
        """Raise UsageError for settings that cannot go together, or an n that can never certify."""
        from smoothctl.smoothing.bounds import least_n_to_certify

        least = least_n_to_certify(self.alpha)
        if self.radii == ():
            raise UsageError("radii must not be empty")
        if self.limit < least:
            raise UsageError(f"n={self.n} can never certify at alpha={self.alpha:g}; certify needs n>={least}")
        if self.radii and self.budget:
            raise UsageError("radii and budget are two stopping rules; choose one")
        if self.radii and self.bound != "binary":
            raise UsageError("bound=multi does not go with radii, whose tests bound p_A alone")
        if self.radii and list(self.radii) != sorted(set(self.radii)):
            raise UsageError("radii must rise, without repetition")


class PredictSettings(Smoothing):
    """What decides a prediction, apart from the model and the images."""

    n: Annotated[Count, Option("Noise samples; at least 1.")] = 1000

    rule: ClassVar[str] = "majority"

    @property
    def most_samples(self) -> int:
        """Forward passes per image."""
        return self.n

    likely_samples = most_samples

    def check(self) -> None:
        """Raise UsageError for an n that can never return a class at this alpha."""
        from smoothctl.smoothing.bounds import least_n_to_predict

        least = least_n_to_predict(self.alpha)
        if self.n < least:
            raise UsageError(f"n={self.n} can never reach alpha={self.alpha:g}; predict needs n>={least}")


class Computing(Settings):
    """Where votes are computed; changes no result."""

    batch_size: Annotated[
        Count | None,
        Option("Noisy images in a forward pass; changes no result.", default="by the device", panel=RUNNING),
    ] = None
    device: Annotated[str, Option("auto, cpu, cuda, cuda:INDEX or mps.", panel=RUNNING)] = "auto"
