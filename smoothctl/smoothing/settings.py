"""Settings of certification and prediction: which images, which noise, how sure, when to stop."""

from __future__ import annotations

from typing import Annotated, Literal

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import Count, Index, Option, Positive, Probability, Seed, Settings

Precision = Literal["fp32", "tf32", "bf16", "fp16"]
AUTO = "auto"

IMAGES, RUNNING = "Images", "Running"


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
                f"`start={self.start}`{'' if self.stop is None else f' `stop={self.stop}`'} leaves no image of {length}"
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
    precision: Annotated[
        Precision | Literal["auto"],
        Option(
            "fp32, tf32, bf16, fp16, or auto: that of the model's log, else the one that is measured to be the fastest "
            "here and answers alike; logs record it.",
            panel=RUNNING,
        ),
    ] = "fp32"
    backend: Annotated[
        str,
        Option(
            "auto, eager, compile, onnxruntime, or another that `smoothctl plugins` lists; auto takes ONNX Runtime for "
            "large jobs on a CPU if it is installed and agrees with PyTorch.",
            panel=RUNNING,
        ),
    ] = AUTO


class CertifySettings(Smoothing):
    """What decides a certificate, apart from the model and the images."""

    n0: Annotated[Count, Option("Noise samples that select the class; at least 1.", panel=RUNNING)] = 100
    n: Annotated[
        Count | None,
        Option(
            "Fresh noise samples that estimate p_A; under other stopping rules than the fixed n, the most that one "
            "image may use.",
            default="100000, or the rule's own",
        ),
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
    norm: Annotated[
        Literal["l1", "l2", "linf"] | None,
        Option(
            "Norm of the radii; from the noise's own they are converted by the inequality between the two (L2 to Linf: "
            "divided by the square root of the number of values in an image).",
            default="the noise's own",
            panel=RUNNING,
        ),
    ] = None
    rule: Annotated[
        str | None,
        Option(
            "Stopping rule; `smoothctl plugins` lists them.",
            default="the one whose option is given, else a fixed n",
            panel=RUNNING,
        ),
    ] = None


class PredictSettings(Smoothing):
    """What decides a prediction, apart from the model and the images."""

    n: Annotated[Count, Option("Noise samples; at least 1.")] = 1000


class Computing(Settings):
    """Where votes are computed; changes no result."""

    batch_size: Annotated[
        Count | None,
        Option("Noisy images in a forward pass; changes no result.", default="by the device", panel=RUNNING),
    ] = None
    device: Annotated[str, Option("auto, cpu, cuda, cuda:INDEX or mps.", panel=RUNNING)] = "auto"
