"""The loss of a method as a module, checked for what a method may return."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.methods import Batch, Method
from smoothctl.records.cost import PASSES

LINE = {
    "epoch", "lr", "loss", "heldout_accuracy", "chance_accuracy", "teacher_accuracy", "seconds", *PASSES,
    "check_radius", "check_images", "certified_accuracy", "teacher_certified_accuracy",
}  # fmt: skip
"""What an epoch's line of the log holds besides the parts of a method's loss."""


class Objective(nn.Module):
    """The loss as a module: one forward per step, whatever the method does inside.

    Raises SmoothctlError if the method returns something else than it should.
    """

    def __init__(self, model: nn.Module, method: Method):
        super().__init__()
        self.model, self.method = model, method

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        try:
            result = self.method.loss(self.model, batch)
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise SmoothctlError(
                "batch norm cannot learn from one image, which is what the last batch leaves to a process; choose "
                "another `batch_size`"
            ) from None
        return _check_loss(result, self.method.name)


def _check_loss(result: Any, method: str) -> tuple[Tensor, dict[str, Tensor]]:
    """What a method returned, as (loss, parts)."""
    loss, parts = result if isinstance(result, tuple) and len(result) == 2 else (result, {})
    if not (_is_number(loss) and loss.requires_grad):
        raise SmoothctlError(f"method {method} must return a loss of one number with a gradient, not {_describe(loss)}")
    if not isinstance(parts, dict) or not all(map(_is_number, parts.values())):
        raise SmoothctlError(f"method {method} must return its parts as a dictionary of tensors of one number each")
    if taken := sorted(LINE & set(parts)):
        raise SmoothctlError(f"method {method} must not name a part {taken[0]}: the log has that name already")
    return loss, parts


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 0


def _describe(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return "one without a gradient" if value.ndim == 0 else f"a tensor of shape {tuple(value.shape)}"
