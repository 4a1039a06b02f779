"""smoothctl: train, transfer, certify and report provably robust image classifiers.

The names below are all that plugins and programs need. They are imported when first used, so
that ``import smoothctl`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smoothctl.api import Architecture as Architecture
    from smoothctl.api import ArrayImages as ArrayImages
    from smoothctl.api import Batch as Batch
    from smoothctl.api import Dataset as Dataset
    from smoothctl.api import Event as Event
    from smoothctl.api import Imported as Imported
    from smoothctl.api import Importer as Importer
    from smoothctl.api import LabelledImages as LabelledImages
    from smoothctl.api import Method as Method
    from smoothctl.api import ModelSpec as ModelSpec
    from smoothctl.api import Noise as Noise
    from smoothctl.api import Recipe as Recipe
    from smoothctl.api import Tracker as Tracker
    from smoothctl.api import Trained as Trained
    from smoothctl.attacks import AttackOptions as AttackOptions
    from smoothctl.attacks import ascent_direction as ascent_direction
    from smoothctl.attacks import attack_batch as attack_batch
    from smoothctl.attacks import attacking as attacking
    from smoothctl.attacks import soft_cross_entropy as soft_cross_entropy
    from smoothctl.augment import random_crop as random_crop
    from smoothctl.augment import random_flip as random_flip
    from smoothctl.certification import certify as certify
    from smoothctl.checkpoint import load_model as load_model
    from smoothctl.data import DatasetMissing as DatasetMissing
    from smoothctl.data import read_npz as read_npz
    from smoothctl.draws import Draws as Draws
    from smoothctl.errors import SmoothctlError as SmoothctlError
    from smoothctl.errors import UsageError as UsageError
    from smoothctl.foreign import Assumptions as Assumptions
    from smoothctl.foreign import read_weights as read_weights
    from smoothctl.hookspecs import hookimpl as hookimpl
    from smoothctl.imagefiles import ImageFiles as ImageFiles
    from smoothctl.imagefiles import class_folders as class_folders
    from smoothctl.models import build_classifier as build_classifier
    from smoothctl.prediction import Prediction as Prediction
    from smoothctl.prediction import predict as predict
    from smoothctl.rules import Certificate as Certificate
    from smoothctl.smoothed import SmoothedClassifier as SmoothedClassifier
    from smoothctl.softvote import soft_vote as soft_vote

__version__ = "0.1.0"

_HOME = {
    "Architecture": "api",
    "ArrayImages": "api",
    "Batch": "api",
    "Dataset": "api",
    "Event": "api",
    "Imported": "api",
    "Importer": "api",
    "LabelledImages": "api",
    "Method": "api",
    "ModelSpec": "api",
    "Noise": "api",
    "Recipe": "api",
    "Tracker": "api",
    "Trained": "api",
    "AttackOptions": "attacks",
    "ascent_direction": "attacks",
    "attack_batch": "attacks",
    "attacking": "attacks",
    "soft_cross_entropy": "attacks",
    "random_crop": "augment",
    "random_flip": "augment",
    "Certificate": "rules",
    "certify": "certification",
    "load_model": "checkpoint",
    "DatasetMissing": "data",
    "read_npz": "data",
    "Draws": "draws",
    "SmoothctlError": "errors",
    "UsageError": "errors",
    "Assumptions": "foreign",
    "read_weights": "foreign",
    "hookimpl": "hookspecs",
    "ImageFiles": "imagefiles",
    "class_folders": "imagefiles",
    "build_classifier": "models",
    "Prediction": "prediction",
    "predict": "prediction",
    "SmoothedClassifier": "smoothed",
    "soft_vote": "softvote",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - its keys are names


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'smoothctl' has no attribute {name!r}")
    return getattr(importlib.import_module(f"smoothctl.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
