"""How the base classifier is evaluated: one function chooses the backend.

The function that is certified is the one that is evaluated here, so logs record backend and precision. Noise is drawn
and added in float32; lower precisions cast the sum.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from smoothctl.base import console
from smoothctl.base.devices import evaluating
from smoothctl.base.errors import UsageError
from smoothctl.hooks.backends import Backend, Classifier, Workload
from smoothctl.hooks.defaults import BACKEND
from smoothctl.hooks.registry import registry
from smoothctl.smoothing.agreement import AGREEMENT, largest_difference, probe_images
from smoothctl.smoothing.outputs import find_logits, input_dtype
from smoothctl.smoothing.settings import AUTO, Precision


def plain(model: nn.Module) -> Classifier:
    """Evaluate a module as it is, in eval mode and its own type (float32 as a rule); it is left as it was."""
    dtype = input_dtype(model)

    def logits(x: Tensor) -> Tensor:
        with evaluating(model):
            return find_logits(model(x.to(dtype))).float()

    return Classifier(logits, BACKEND, "fp32")


def make_ready(
    model: nn.Module,
    shape: tuple[int, int, int],
    device: torch.device,
    batch_size: int,
    precision: Precision = "fp32",
    backend: str = AUTO,
    passes: float = float("inf"),
) -> Classifier:
    """Make a frozen module ready for images of this shape, about ``passes`` of them in all.

    ``auto`` takes the backend that repays its preparation for the most passes, if it can be had and agrees with
    PyTorch on noisy probes; else the next one. Raises UsageError for a backend that was named and is not there, cannot
    evaluate this network, or does not agree.
    """
    work = Workload(shape, device, batch_size, precision)
    reference = plain(model)
    probes = probe_images(shape, device)
    for candidate in _candidates(backend, work, passes):
        refuse = _refusing if backend == candidate.name != BACKEND else _passing_over
        try:
            logits = candidate.prepare(model, work)
        except UsageError as error:
            if backend == candidate.name:
                raise UsageError(f"backend {candidate.name}: {error}") from error
            continue
        made = Classifier(logits, candidate.name, precision, candidate.own_threads)
        if precision != "fp32" or _agree(made, reference, probes, refuse):
            return made
    return reference


def _candidates(name: str, work: Workload, passes: float) -> list[Backend]:
    """The backend of a name, or those that may be taken unasked, first that for the largest jobs."""
    device, precision = work.device.type, work.precision
    every: list[Backend] = [entry.value for entry in registry().all("backend")]
    if not any(each.serves(device, precision) for each in every) or (device == "cpu" and precision in ("tf32", "fp16")):
        raise UsageError(f"precision {precision} needs a GPU; on a CPU there are fp32 and bf16")
    if name != AUTO:
        chosen: Backend = registry().find("backend", name).value
        if not chosen.serves(device, precision):
            raise UsageError(
                f"backend {chosen.name} runs {', '.join(chosen.precisions)} on {', '.join(chosen.devices)}, "
                f"not {precision} on {device}"
            )
        return [chosen]
    serving = [
        each
        for each in every
        if each.serves(device, precision) and each.least_passes is not None and passes >= each.least_passes
    ]
    return sorted(serving, key=lambda each: -(each.least_passes or 0))


def _agree(candidate: Classifier, reference: Classifier, probes: Tensor, refuse: Callable[[str, str], bool]) -> bool:
    """Whether logits agree with the reference; if not, or if they cannot be computed, it is for ``refuse`` to say."""
    try:
        difference = largest_difference(candidate.logits, reference.logits, probes)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        return refuse(candidate.backend, f"cannot evaluate batches of every size ({reason})")
    if difference <= AGREEMENT:
        return True
    return refuse(candidate.backend, f"does not agree with PyTorch here (logits differ by {difference:.2g})")


def _refusing(name: str, why: str) -> bool:
    raise UsageError(f"backend {name} {why}")


def _passing_over(name: str, why: str) -> bool:
    console.note(f"{name} {why}, so it is not used")
    return False


def automatic_batch_size(shape: tuple[int, int, int], device: torch.device) -> int:
    """A batch that keeps the device busy; it is halved if the memory does not suffice."""
    pixels = shape[0] * shape[1] * shape[2]
    images = 256 if device.type == "cpu" else 4096
    return max(16, min(4 * images, images * 3 * 32 * 32 // pixels))
