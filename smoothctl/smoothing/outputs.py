"""What networks return, brought to logits [B,K] in float32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from smoothctl.base.errors import UsageError

WRAPPER = "class TwoLogits(nn.Module): forward(self, x): z = self.network(x); return torch.cat([-z, z], dim=1)"


def find_logits(output: Any) -> Tensor:
    """The logits in what a network returned: a tensor, or the one that is meant in a structure.

    That is the attribute or entry ``logits`` if there is one, else the only tensor. Raises UsageError where there is
    none, or several.
    """
    if isinstance(output, Tensor):
        return output
    named = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    if isinstance(named, Tensor):
        return named
    parts = list(output.values()) if isinstance(output, Mapping) else output
    tensors = [part for part in parts if isinstance(part, Tensor)] if isinstance(parts, (list, tuple)) else []
    if len(tensors) == 1:
        return tensors[0]
    found = f"{len(tensors)} tensors and no 'logits'" if tensors else "no tensor"
    raise UsageError(
        f"the network returns a {type(output).__name__} with {found}; wrap it in a module whose forward returns the "
        "logits [B, classes]"
    )


def describe_output(output: Any) -> str:
    """Which part of what a network returned is taken for logits; empty if it is the tensor itself."""
    if isinstance(output, Tensor):
        return ""
    named = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    which = "'logits'" if isinstance(named, Tensor) else "the only tensor"
    return f"the network returns a {type(output).__name__}: {which} in it is taken for the logits"


def require_logits(logits: Tensor, rows: int) -> Tensor:
    """Logits of so many images [B,K] with K >= 2; raises UsageError for any other shape."""
    if logits.ndim != 2 or len(logits) != rows:
        raise UsageError(f"the model gave {tuple(logits.shape)} for {rows} images, not [{rows}, classes]")
    if logits.shape[1] < 2:
        raise UsageError(
            f"the model gives one logit ({list(logits.shape)} for {rows} images), whose largest is always class 0; "
            f"give it two, as in {WRAPPER}"
        )
    return logits


def input_dtype(model: nn.Module) -> torch.dtype:
    """The type in which a module computes, by its first parameter in floating point; float32 if it has none."""
    kinds = (item.dtype for item in (*model.parameters(), *model.buffers()) if item.is_floating_point())
    return next(kinds, torch.float32)
