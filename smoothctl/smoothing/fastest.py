"""The precision in which a network is evaluated fastest and still answers alike: measured, and remembered."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import get_args

import torch
from filelock import FileLock
from torch import Tensor, nn

from smoothctl.base import files, launcher
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.base.timing import least_seconds
from smoothctl.hooks.backends import Classifier
from smoothctl.hooks.defaults import BACKEND
from smoothctl.smoothing.backends import make_ready
from smoothctl.smoothing.settings import Precision

LOWER: Mapping[str, tuple[Precision, ...]] = {"cpu": ("bf16",), "cuda": ("tf32", "bf16", "fp16")}
"""What else than fp32 there is, by kind of device."""
ALIKE = 0.95
"""Of the answers under noise, what must be those of fp32."""


Seconds = dict[Precision, float]
"""What a batch takes in each precision that answers alike; fp32 comes first."""


def measure(model: nn.Module, reference: Classifier, probes: Tensor) -> Seconds:
    """Time the precisions of a device on noisy images [B,C,H,W]; ``reference`` is the network made ready in fp32.

    A lower precision is timed in PyTorch as it is, which flatters none, and is left out if more than a few of its
    answers are others.
    """
    alike: dict[Precision, Classifier] = {"fp32": reference}
    answers = reference.logits(probes).argmax(1)
    shape, device = (probes.shape[1], probes.shape[2], probes.shape[3]), probes.device
    for precision in LOWER.get(device.type, ()):
        try:
            made = make_ready(model, shape, device, len(probes), precision, BACKEND)
            same = (made.logits(probes).argmax(1) == answers).float().mean()
        except (UsageError, RuntimeError, NotImplementedError):
            continue  # this device, or a layer of this network, has no such precision
        if same >= ALIKE:
            alike[precision] = made
    return least_seconds({name: partial(_evaluate, made, probes) for name, made in alike.items()})


def _evaluate(classifier: Classifier, probes: Tensor) -> float:
    return classifier.logits(probes).sum().item()  # a number, which waits for the device


def remembered(model: str, probes: Tensor, measuring: Callable[[], Seconds]) -> Seconds:
    """What was measured for a model, by its SHA-256, on this machine; it is measured once.

    Processes that torchrun started wait for the first that measures, so that all do the same. Raises UsageError where
    they could not: on several machines, or without a place to remember it.
    """
    path = _place(model, probes)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            found = _read(path)
            if found is None:
                found = measuring()
                files.write_json(path, {"seconds": found})
    except OSError as error:
        if launcher.world_size() > 1:
            raise UsageError(f"precision auto: the processes cannot agree ({error}); name the precision") from None
        return measuring()
    return found


def _place(model: str, probes: Tensor) -> Path:
    """The file for a model, this machine, its threads, and batches like this one, in the user's cache."""
    device = probes.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    parts = (model, platform.node(), name, torch.get_num_threads(), torch.__version__, list(probes.shape))
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "smoothctl" / "precision" / f"{key[:32]}.json"


def _read(path: Path) -> Seconds | None:
    """What a file remembers; None if it is not there, or says something else."""
    try:
        seconds = files.read_json(path)["seconds"]
        return {name: float(seconds[name]) for name in get_args(Precision) if name in seconds} or None
    except (OSError, SmoothctlError, TypeError, KeyError, ValueError):
        return None
