"""Models made of models: several averaged as one base classifier, and a denoiser in front of one.

Both are models like any other: an architecture (the families ``ensemble/`` and ``denoised/``), its
options, and weights, so that one file holds all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from smoothctl import console
from smoothctl.checkpoint import Model, ModelInfo
from smoothctl.errors import UsageError
from smoothctl.foreign import read_weights
from smoothctl.models import build_classifier
from smoothctl.weights import file_sha256, load_state

ENSEMBLE, DENOISED = "ensemble/", "denoised/"


def combine(models: Sequence[Model]) -> Model:
    """Average several models as one base classifier.

    Raises UsageError unless they share classes, image shape and noise; what they do not share of sigma is unknown.
    """
    first = models[0].info
    for model in models[1:]:
        for what in ("class_names", "input_shape", "noise", "dataset"):
            if getattr(model.info, what) != getattr(first, what):
                raise UsageError(f"{models[0].path} and {model.path} differ in {what.replace('_', ' ')}")
    sigmas = {model.info.sigma for model in models}
    if len(sigmas) > 1:
        console.warn(f"the models were trained for different sigma: {', '.join(map(str, sigmas))}")
    arch = ENSEMBLE + "+".join(model.info.arch for model in models)
    options = {"members": [model.info.arch_options for model in models]}
    state = {
        f"members.{place}.{key}": value for place, model in enumerate(models) for key, value in _state(model).items()
    }
    sigma = sigmas.pop() if len(sigmas) == 1 else None
    return _compose(models, arch, options, state, sigma)


def denoised(model: Model, denoiser: Path | None) -> Model:
    """Put a denoiser, read from its own file, in front of a model; None leaves the model as it is.

    Raises SmoothctlError if the file does not hold the weights of a denoiser of this kind.
    """
    if denoiser is None:
        return model
    front = read_weights(denoiser).state
    depth = sum(value.ndim == 4 for value in front.values())
    width = next((len(value) for value in front.values() if value.ndim == 4), 0)
    options = {**model.info.arch_options, "depth": depth, "width": width}
    state = {f"denoiser.{key}": value for key, value in front.items()}
    state |= {f"classifier.{key}": value for key, value in _state(model).items()}
    return _compose([model], DENOISED + model.info.arch, options, state, model.info.sigma, denoiser)


def _state(model: Model) -> dict[str, Tensor]:
    classifier = model.classifier
    constants = {"normalize.mean": classifier.normalize.mean, "normalize.std": classifier.normalize.std}
    return {**constants, **classifier.state_dict()}


def _compose(
    models: Sequence[Model],
    arch: str,
    options: Mapping[str, Any],
    state: Mapping[str, Tensor],
    sigma: float | None,
    denoiser: Path | None = None,
) -> Model:
    first = models[0].info
    channels = first.input_shape[0]
    built = build_classifier(arch, len(first.class_names), first.input_shape, options)
    load_state(built.network, state, denoiser or models[0].path, arch)
    described: dict[str, Any] = {
        **first.model_dump(),
        "arch": arch,
        "arch_options": dict(options),
        "mean": [0.0] * channels,
        "std": [1.0] * channels,
        "sigma": sigma,
        "method": "+".join(model.info.method for model in models),
        "method_options": {},
        "origin": None,
    }
    hashes = [model.sha256 for model in models] + ([file_sha256(denoiser)] if denoiser else [])
    device = next(models[0].classifier.parameters()).device
    return Model(
        built.to(device).eval().requires_grad_(False),
        ModelInfo(**described),
        hashlib.sha256("".join(hashes).encode()).hexdigest(),
        models[0].path,
    )
