"""The base classifier made ready for a job, with what its settings leave open decided and told."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeVar

import torch

from smoothctl.base import console
from smoothctl.base.launcher import leads
from smoothctl.base.timing import describe, fastest
from smoothctl.hooks.backends import Backend, Classifier
from smoothctl.hooks.registry import registry
from smoothctl.models.checkpoint import Model
from smoothctl.records.log import read_sidecar
from smoothctl.smoothing.backends import automatic_batch_size, make_ready
from smoothctl.smoothing.fastest import Seconds, measure, remembered
from smoothctl.smoothing.settings import AUTO, Precision, Smoothing

S = TypeVar("S", bound=Smoothing)

LONG = 100_000
"""Forward passes from which on it is worth a second to see what a lower precision would save."""
FEWEST, MOST = 4, 32
"""Images of a batch that is timed."""


def ready(
    model: Model, settings: S, device: torch.device, batch_size: int, passes: float, recorded: Path
) -> tuple[S, Classifier]:
    """A model's network made ready for about ``passes`` noisy images, and the settings with its precision.

    ``auto`` is what the log ``recorded`` has, if it is of this model: else the backend that suits the job, and the
    precision that is measured to be the fastest and answers alike. Raises UsageError as `make_ready` does.
    """
    there = read_sidecar(recorded).get("settings", {})
    if there.get("model") != model.sha256:
        there = {}
    asked: Precision | Literal["auto"] = settings.precision
    if asked == AUTO and "precision" in there:
        asked = there["precision"]
        _tell(f"precision auto: {asked}, as {recorded} has it")
    precision: Precision = "fp32" if asked == "auto" else asked
    kept = settings.backend == AUTO and _serves(there.get("backend"), device, precision)
    shape, backend = model.info.input_shape, there["backend"] if kept else settings.backend
    classifier = make_ready(model.classifier, shape, device, batch_size, precision, backend, passes)
    if asked == AUTO:
        seconds = _seconds(model, classifier, device)
        precision = fastest(seconds)
        _tell(f"precision auto: {precision} (a small batch takes {describe(seconds)})")
        if precision != classifier.precision:
            classifier = make_ready(model.classifier, shape, device, batch_size, precision, settings.backend, passes)
    elif precision == "fp32" and passes >= LONG and _is_fast_below(device) and leads():
        seconds = _seconds(model, classifier, device)
        if (best := fastest(seconds)) != precision:
            fraction = seconds[best] / seconds[precision]
            _tell(
                f"precision {best} would take {fraction:.2f} of the time; what is certified is the network as it is "
                "evaluated"
            )
    return settings.model_copy(update={"precision": precision}), classifier


def _tell(message: str) -> None:
    if leads():
        console.note(message)


def _serves(name: str | None, device: torch.device, precision: str) -> bool:
    """Whether a backend that a log names is there, and evaluates in this precision on this device."""
    found: list[Backend] = [entry.value for entry in registry().all("backend") if entry.name == name]
    return bool(found) and found[0].serves(device.type, precision)


def _is_fast_below(device: torch.device) -> bool:
    """Whether a lower precision may be faster; elsewhere CPUs emulate it, which takes seconds to find out."""
    return device.type == "cuda" or (device.type == "cpu" and torch.backends.cpu.get_cpu_capability() == "AVX512")


def _seconds(model: Model, classifier: Classifier, device: torch.device) -> Seconds:
    """What the precisions take on random images with noise, measured once for a model and a machine."""
    shape = model.info.input_shape
    count = min(MOST, max(FEWEST, automatic_batch_size(shape, device) // 8))
    draws = torch.Generator().manual_seed(0)
    noise = (model.info.sigma or 0.0) * torch.randn(count, *shape, generator=draws)
    probes = (torch.rand(count, *shape, generator=draws) + noise).to(device)
    return remembered(model.sha256, probes, lambda: measure(model.classifier, classifier, probes))
