"""torch.compile, for batches of one size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from smoothctl import Backend, Workload, evaluating, hookimpl

if TYPE_CHECKING:
    from torch import Tensor, nn


def prepare(model: nn.Module, work: Workload) -> Callable[[Tensor], Tensor]:
    """Smaller batches are filled up, so that it compiles once.

    Out of memory, it halves that size, as the sampler halves its batches.
    """
    import torch

    from .eager import dtype_of, frozen

    network, dtype = frozen(model, work.precision), dtype_of(work.precision)
    compiled = torch.compile(network)
    size = work.batch_size

    def logits(x: Tensor) -> Tensor:
        nonlocal size
        with evaluating(network, tf32=work.precision == "tf32"):
            missing = max(0, size - len(x))
            filled = torch.cat([x, x.new_zeros(missing, *x.shape[1:])]) if missing else x
            try:
                result: Tensor = compiled(filled.to(dtype, memory_format=torch.channels_last))
            except torch.OutOfMemoryError:
                size = max(1, size // 2)
                raise
            return result[: len(x)].float()

    return logits


@hookimpl
def register_backends() -> list[Backend]:
    return [Backend("compile", prepare, "torch.compile, for batches of one size", devices=("cpu", "cuda"))]
