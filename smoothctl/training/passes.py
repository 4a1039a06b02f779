"""The network of a training step: its precision, and how many images pass forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from smoothctl.base.errors import SmoothctlError

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass
class Passes:
    """Images that went through a network; one noise sample is one image."""

    forward: int = 0
    backward: int = 0
    teacher: int = 0


class CountedModel(nn.Module):
    """A model as methods see it: in the precision asked for, counted, and compiled if that is wanted.

    Only the network computes in a lower precision; noise is added and losses are taken in float32.
    """

    def __init__(self, model: nn.Module, precision: str = "fp32", compiled: bool = False):
        super().__init__()
        self.model = torch.compile(model) if compiled else model
        self.dtype = AUTOCAST.get(precision)
        self.passes = Passes()

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B,K] in float32 of pixels [B,C,H,W]; raises SmoothctlError for a network that gives more."""
        with torch.autocast(x.device.type, dtype=self.dtype, enabled=self.dtype is not None):
            logits: Tensor = self.model(x.contiguous(memory_format=torch.channels_last))
        if not isinstance(logits, Tensor):
            raise SmoothctlError(
                f"in training the network gives a {type(logits).__name__}, not a tensor of logits; switch its "
                "auxiliary outputs off (`arch_options`)"
            )
        self.passes.forward += len(x)
        if logits.requires_grad:
            logits.register_hook(self._count_backward)
        return logits.float()

    def _count_backward(self, gradient: Tensor) -> None:
        self.passes.backward += len(gradient)
