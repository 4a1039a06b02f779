"""smoothctl: train, transfer, certify and report provably robust image classifiers.

The names below are all that plugins and programs need. They are imported when first used, so
that ``import smoothctl`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smoothctl.api import (
        Architecture,
        ArrayImages,
        Batch,
        Dataset,
        Event,
        LabelledImages,
        Method,
        ModelSpec,
        Noise,
        Recipe,
    )
    from smoothctl.augment import random_crop, random_flip
    from smoothctl.certification import Certificate, certify
    from smoothctl.checkpoint import load_model
    from smoothctl.data import DatasetMissing
    from smoothctl.draws import Draws
    from smoothctl.errors import SmoothctlError, UsageError
    from smoothctl.hookspecs import hookimpl
    from smoothctl.prediction import Prediction, predict
    from smoothctl.smoothed import SmoothedClassifier

__version__ = "0.1.0"

_HOME = {
    "Architecture": "api",
    "ArrayImages": "api",
    "Batch": "api",
    "Dataset": "api",
    "Event": "api",
    "LabelledImages": "api",
    "Method": "api",
    "ModelSpec": "api",
    "Noise": "api",
    "Recipe": "api",
    "random_crop": "augment",
    "random_flip": "augment",
    "Certificate": "certification",
    "certify": "certification",
    "load_model": "checkpoint",
    "DatasetMissing": "data",
    "Draws": "draws",
    "SmoothctlError": "errors",
    "UsageError": "errors",
    "hookimpl": "hookspecs",
    "Prediction": "prediction",
    "predict": "prediction",
    "SmoothedClassifier": "smoothed",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - the keys are the names imported above


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'smoothctl' has no attribute {name!r}")
    return getattr(importlib.import_module(f"smoothctl.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
