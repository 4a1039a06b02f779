"""Models made of models: several averaged as one base classifier, and a denoiser in front of one.

How is the business of the families that say so (``Architecture.average`` and ``Architecture.denoise``).
What comes out is a model like any other: an architecture, its options and weights, so that one file
holds all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smoothctl.base import console
from smoothctl.base.errors import UsageError
from smoothctl.base.files import file_sha256
from smoothctl.hooks.networks import Trained
from smoothctl.hooks.registry import registry
from smoothctl.models.checkpoint import Model, ModelInfo, Origin
from smoothctl.models.classifier import build_classifier
from smoothctl.models.safe_loading import load_state


def combine(models: Sequence[Model], options: Mapping[str, Any]) -> Model:
    """Average several models as one base classifier; ``options`` are those of the architecture that does it.

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
    for entry in registry().all("architecture"):
        if entry.value.average is not None:
            return _compose(models, entry.value.average([_describe(model) for model in models], options))
    raise UsageError("no architecture that averages models is installed; smoothctl plugins lists what is")


def denoised(model: Model, denoiser: Path | None, sigma: float | None = None) -> Model:
    """Put a denoiser, read from its own file or folder, in front of a model; None leaves the model as it is.

    ``sigma`` is that of the noise (None: the model's). Raises SmoothctlError or UsageError, in one line, if
    no family reads such a denoiser or it does not go with the model.
    """
    if denoiser is None:
        return model
    described = _describe(model)
    for entry in registry().all("architecture"):
        read = entry.value.denoise
        if read is not None and (made := read(described, denoiser, sigma or described.sigma)) is not None:
            return _compose([model], made)
    raise UsageError(f"`denoiser`: no architecture here reads {denoiser}; docs/models.md says what is read")


def _describe(model: Model) -> Trained:
    info, classifier = model.info, model.classifier
    constants = {"normalize.mean": classifier.normalize.mean, "normalize.std": classifier.normalize.std}
    state = {**constants, **classifier.state_dict()}
    return Trained(info.arch, info.arch_options, state, info.input_shape, info.sigma)


def _compose(models: Sequence[Model], made: Trained) -> Model:
    """Build and record what a family made of models; raises SmoothctlError if its weights do not fit."""
    first = models[0]
    channels = made.input_shape[0]
    built = build_classifier(made.arch, len(first.info.class_names), made.input_shape, made.options)
    load_state(built.network, made.state, made.files[0] if made.files else first.path, made.arch)
    read = [(model.path, model.sha256) for model in models] + [(file, file_sha256(file)) for file in made.files]
    described: dict[str, Any] = {
        **first.info.model_dump(),
        "arch": made.arch,
        "arch_options": dict(made.options),
        "input_shape": made.input_shape,
        "mean": [0.0] * channels,
        "std": [1.0] * channels,
        "sigma": made.sigma,
        "method": "+".join(model.info.method for model in models),
        "method_options": {},
        "origin": None,
        "parts": [Origin(file=path.name, sha256=sha256) for path, sha256 in read],
    }
    if made.note:
        console.note(made.note)
    device = next(first.classifier.parameters()).device
    return Model(
        built.to(device).eval().requires_grad_(False),
        ModelInfo(**described),
        hashlib.sha256("".join(sha256 for _, sha256 in read).encode()).hexdigest(),
        first.path,
    )
