"""PyTorch as it is, with batch norm folded into convolutions and in the channels-last layout."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

from smoothctl import Backend, Workload, evaluating, hookimpl

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


def prepare(model: nn.Module, work: Workload) -> Callable[[Tensor], Tensor]:
    import torch

    network, dtype = frozen(model, work.precision), dtype_of(work.precision)

    def logits(x: Tensor) -> Tensor:
        with evaluating(network, tf32=work.precision == "tf32"):
            result: Tensor = network(x.to(dtype, memory_format=torch.channels_last))
            return result.float()

    return logits


def dtype_of(precision: str) -> torch.dtype:
    """The type that networks compute in; TF32 is float32 with shorter products."""
    import torch

    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)


def frozen(model: nn.Module, precision: str) -> nn.Module:
    """A folded copy in a precision, channels last."""
    import torch

    return fold_batch_norm(model).to(dtype_of(precision)).to(memory_format=torch.channels_last)


def fold_batch_norm(model: nn.Module) -> nn.Module:
    """A frozen copy with each batch norm folded into the convolution before it.

    A network that cannot be traced is only copied.
    """
    from torch.fx.experimental import optimization

    frozen = copy.deepcopy(model).eval().requires_grad_(False)
    try:
        folded: nn.Module = optimization.fuse(frozen)
    except Exception:
        return frozen
    return folded.eval().requires_grad_(False)


@hookimpl
def register_backends() -> list[Backend]:
    return [Backend("eager", prepare, "PyTorch, channels last, batch norm folded", least_passes=0)]
