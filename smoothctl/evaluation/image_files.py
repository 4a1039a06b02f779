"""Predicting image files, of any size that PIL reads."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from smoothctl.base import console
from smoothctl.base.devices import choose_device
from smoothctl.base.errors import UsageError
from smoothctl.base.settings import keyword_settings
from smoothctl.evaluation.classifier import ready
from smoothctl.evaluation.plan import warn_mismatch, warn_other_function
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import EIGHT_BIT, to_pixels
from smoothctl.images.files import open_image
from smoothctl.images.resizing import Fit
from smoothctl.models.checkpoint import load_model, require_sigma
from smoothctl.models.composition import denoised
from smoothctl.models.import_checkpoint import assumptions
from smoothctl.models.settings import ModelSource
from smoothctl.records.log import default_log
from smoothctl.smoothing.backends import automatic_batch_size
from smoothctl.smoothing.predict import Prediction, resolve_vote
from smoothctl.smoothing.sampling import Sampler
from smoothctl.smoothing.settings import Computing, PredictSettings


@dataclass(frozen=True)
class FilePrediction:
    """What the smoothed classifier says of one file; ``class_name`` is None when it abstains."""

    path: Path
    predict: int
    class_name: str | None
    n: int
    p_value: float
    votes: dict[str, int]

    def leading(self, count: int) -> list[tuple[str, int]]:
        """The classes with most votes."""
        ranked = sorted(self.votes.items(), key=lambda pair: -pair[1])
        return [pair for pair in ranked if pair[1]][:count]

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "path": str(self.path)}


@keyword_settings
def predict_files(
    model: Path | str, paths: Sequence[Path | str], settings: PredictSettings, given: ModelSource, computing: Computing
) -> list[FilePrediction]:
    """Predict each file; its noise belongs to its pixels, so that neither name nor order matters.

    By itself, the backend is the one by which the model was certified. Raises UsageError for a file that is not an
    image.
    """
    vote = resolve_vote(settings)
    device = choose_device(computing.device)
    assumed = assumptions(given, settings.dataset)
    loaded = denoised(load_model(model, device, assumed), given.denoiser, settings.sigma)
    certified = default_log(Path(model), "certify")
    info = loaded.info
    sigma = require_sigma(settings.sigma, loaded)
    noise = settings.noise or info.noise
    warn_mismatch(loaded, sigma, noise)
    images = [read_image(Path(path), info.input_shape) for path in paths]
    size = computing.batch_size or automatic_batch_size(info.input_shape, device)
    settings, classifier = ready(loaded, settings, device, size, vote.n * len(images), certified)
    warn_other_function(classifier, certified)
    sampler: Sampler[Prediction] = Sampler(
        classifier, registry().find("noise", noise).value, sigma, settings.seed, device, size,
        levels=EIGHT_BIT, model=loaded.classifier,
    )  # fmt: skip

    rule = vote.rules(sampler.arithmetic, math.prod(info.input_shape))
    outcomes = [next(sampler.run([(pixel_key(x), x)], rule)).outcome for x in images]
    return [
        FilePrediction(
            Path(path),
            outcome.predict,
            info.class_names[outcome.predict] if outcome.predict >= 0 else None,
            outcome.n,
            outcome.p_value,
            dict(zip(info.class_names, outcome.votes.tolist(), strict=True)),
        )
        for path, outcome in zip(paths, outcomes, strict=True)
    ]


def read_image(path: Path, shape: tuple[int, int, int]) -> Tensor:
    """Read an image as float32 [C,H,W] in [0,1] in the model's shape, saying on stderr if it was resized.

    It is turned upright, brought to grey (1 channel) or RGB (3), resized (bilinear) so that it
    just covers the model's height and width, and cropped in the centre.
    """
    _, height, width = shape
    try:
        image = open_image(path)
    except OSError as error:
        raise UsageError(str(error)) from None
    if image.size != (width, height):
        console.note(f"{path}: {image.width}x{image.height} resized and centre-cropped to {width}x{height}")
    return to_pixels(Fit(shape)(image), str(path))


def pixel_key(x: Tensor) -> int:
    """A number below 2^63 that belongs to an image's pixels."""
    return int.from_bytes(hashlib.sha256(x.numpy().tobytes()).digest()[:8], "big") >> 1
