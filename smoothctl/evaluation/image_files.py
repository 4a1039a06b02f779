"""Predicting image files, of any size that PIL reads."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from torch import Tensor

from smoothctl.base import console
from smoothctl.base.devices import choose_device
from smoothctl.base.errors import UsageError
from smoothctl.base.settings import keyword_settings
from smoothctl.evaluation.classifier import ready
from smoothctl.evaluation.plan import warn_mismatch, warn_other_function
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import Rule
from smoothctl.images.datasets import EIGHT_BIT, to_pixels
from smoothctl.images.files import find_images, name_of, open_image
from smoothctl.images.resizing import Fit
from smoothctl.models.checkpoint import Model, load_model, require_sigma
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


@dataclass(frozen=True)
class FilePredictor:
    """A smoothed classifier that is asked about one image file after another."""

    model: Model
    sampler: Sampler[Prediction]
    rule: Callable[[int], Rule[Prediction]]

    def __call__(self, path: Path) -> FilePrediction:
        """Predict a file; its noise belongs to its pixels, so that neither name nor order matters.

        Raises UsageError for a file that is not an image.
        """
        info = self.model.info
        x = read_image(path, info.input_shape)
        found = next(self.sampler.run([(pixel_key(x), x)], self.rule)).outcome
        name = info.class_names[found.predict] if found.predict >= 0 else None
        votes = dict(zip(info.class_names, found.votes.tolist(), strict=True))
        return FilePrediction(path, found.predict, name, found.n, found.p_value, votes)


def open_predictor(
    model: Path, settings: PredictSettings, given: ModelSource, computing: Computing, files: int = 1
) -> FilePredictor:
    """Load and check everything that predicting about so many image files needs.

    By itself, the backend is the one by which the model was certified.
    """
    vote = resolve_vote(settings)
    device = choose_device(computing.device)
    loaded = load_model(model, device, assumptions(given, settings.dataset))
    loaded = denoised(loaded, given.denoiser, settings.sigma)
    shape, certified = loaded.info.input_shape, default_log(model, "certify")
    sigma, noise = require_sigma(settings.sigma, loaded), settings.noise or loaded.info.noise
    warn_mismatch(loaded, sigma, noise)
    size = computing.batch_size or automatic_batch_size(shape, device)
    settings, classifier = ready(loaded, settings, device, size, vote.n * files, certified)
    warn_other_function(classifier, certified)
    sampler: Sampler[Prediction] = Sampler(
        classifier, registry().find("noise", noise).value, sigma, settings.seed, device, size,
        levels=EIGHT_BIT, model=loaded.classifier,
    )  # fmt: skip
    return FilePredictor(loaded, sampler, vote.rules(sampler.arithmetic, math.prod(shape)))


def image_files(paths: Iterable[Path]) -> list[Path]:
    """The files themselves, and the images below the folders among them, at any depth, in the order of their paths.

    Raises UsageError for a folder without an image.
    """
    found: list[Path] = []
    for path in paths:
        below = find_images(path) if path.is_dir() else [path]
        if not below:
            raise UsageError(f"there is no image below {path}")
        found += below
    return found


@keyword_settings
def predict_files(
    model: Path | str, paths: Sequence[Path | str], settings: PredictSettings, given: ModelSource, computing: Computing
) -> list[FilePrediction]:
    """Predict image files, and those below folders, by PREDICT of Cohen et al. 2019.

    Raises UsageError for a file that is not an image.
    """
    files = image_files(map(Path, paths))
    predictor = open_predictor(Path(model), settings, given, computing, len(files))
    return [predictor(path) for path in files]


def read_image(file: Path | BinaryIO, shape: tuple[int, int, int]) -> Tensor:
    """Read an image, from a file or from bytes in memory, as float32 [C,H,W] in [0,1] in the model's shape.

    It is turned upright, brought to grey (1 channel) or RGB (3), resized (bilinear) so that it just covers the model's
    height and width, and cropped in the centre; a note says so. Raises UsageError for what is no image.
    """
    _, height, width = shape
    try:
        image = open_image(file)
    except OSError as error:
        raise UsageError(str(error)) from None
    name = name_of(file)
    if image.size != (width, height):
        console.note(f"{name}: {image.width}x{image.height} resized and centre-cropped to {width}x{height}")
    return to_pixels(Fit(shape)(image), name)


def pixel_key(x: Tensor) -> int:
    """A number below 2^63 that belongs to an image's pixels."""
    return int.from_bytes(hashlib.sha256(x.numpy().tobytes()).digest()[:8], "big") >> 1
