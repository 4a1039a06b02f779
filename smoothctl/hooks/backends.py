"""Ways to evaluate a network, and the network made ready by one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


@dataclass(frozen=True)
class Classifier:
    """A base classifier made ready: ``logits`` takes pixels [B,C,H,W] in float32, noise included, to
    float32 logits [B,K]; ``backend`` and ``precision`` say how. ``own_threads``: not torch's."""

    logits: Callable[[Tensor], Tensor]
    backend: str
    precision: str
    own_threads: bool = False


@dataclass(frozen=True)
class Workload:
    """What a network is to be evaluated on: images of a shape [C,H,W], so many at once, on a device, in a precision."""

    shape: tuple[int, int, int]
    device: torch.device
    batch_size: int
    precision: str


@dataclass(frozen=True)
class Backend:
    """A way to evaluate a network; certificates are about the function that it computes.

    ``prepare(network, workload)`` gives a function from pixels [B,C,H,W] in float32, in batches of any size up to the
    workload's, to logits [B,K]; the network is in eval mode and frozen, and is left as it is. It raises UsageError,
    with a reason and a remedy, for what it cannot evaluate. In fp32 the engine checks that logits agree with PyTorch's.

    devices, precisions: those that it serves. least_passes: from so many forward passes on a job may be given to it
    without being asked, since they repay the preparation; None: only by name. own_threads: it computes in threads
    of its own, not torch's.
    """

    name: str
    prepare: Callable[[nn.Module, Workload], Callable[[Tensor], Tensor]]
    summary: str = ""
    devices: Sequence[str] = ("cpu", "cuda", "mps")
    precisions: Sequence[str] = ("fp32", "tf32", "bf16", "fp16")
    least_passes: int | None = None
    own_threads: bool = False
    aliases: tuple[str, ...] = ()

    def serves(self, device: str, precision: str) -> bool:
        """Whether it evaluates in this precision on this kind of device."""
        return device in self.devices and precision in self.precisions
