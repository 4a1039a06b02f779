"""What people say of a model file that does not say it itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from smoothctl.base.settings import Count, Option, Pairs, Settings

MODEL = "Model file"

ONNX, PROGRAM = ".onnx", ".pt2"
EXPORTED = (ONNX, PROGRAM)
"""Endings of files for other runtimes, which are written and never read."""


def arch_option(panel: str) -> Option:
    """How people are told of an architecture's options."""
    return Option("Option of the architecture.", ("--arch-option",), metavar="NAME=VALUE", panel=panel, repeated=True)


def normalize_option(panel: str, default: str = "") -> Option:
    """How people are told of a normalization layer."""
    return Option(
        "Normalization layer: a dataset's name (cifar10, imagenet), center (its mean only), none, or mean,std.",
        metavar="HOW", default=default, panel=panel,
    )  # fmt: skip


class ModelSource(Settings):
    """How a third-party model file is to be read, and what stands in front of the model."""

    arch: Annotated[
        str | None,
        Option("Architecture of a model file that does not say it (third-party, or your own module's).", panel=MODEL),
    ] = None
    arch_options: Annotated[Pairs, arch_option(MODEL)] = Field(default_factory=dict)
    normalize: Annotated[str | None, normalize_option(MODEL)] = None
    size: Annotated[
        Count | None,
        Option("Side in pixels that a third-party model takes, to which image files are brought.", panel=MODEL),
    ] = None
    state_key: Annotated[
        str | None, Option("Where in the file the weights are, such as ema.state_dict.", metavar="KEY", panel=MODEL)
    ] = None
    denoiser: Annotated[
        Path | None,
        Option(
            "A denoiser to put in front of the model: weights of a DnCNN, or a folder of a diffusion model.",
            metavar="PATH", panel=MODEL,
        ),
    ] = None  # fmt: skip


class ConvertSettings(Settings):
    """What is recorded of a third-party model that does not say it itself."""

    sigma: Annotated[
        Annotated[float, Field(ge=0)] | None,
        Option(
            "The sigma that OLD was trained for, where it does not say (0: without noise); with a diffusion model as "
            "--denoiser, that of the noise to be taken away."
        ),
    ] = None
    dataset: Annotated[str | None, Option("Dataset; `smoothctl plugins` lists them.")] = None
    noise: Annotated[str | None, Option("Noise; `smoothctl plugins` lists them.", panel=MODEL)] = None
    overwrite: Annotated[bool, Option("Replace NEW if it is there.", panel="Output")] = False
