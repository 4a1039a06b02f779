"""What a method may return: a loss of one number, and parts that the log has room for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from smoothctl import Batch, Method, SmoothctlError
from smoothctl.training.objective import Objective

LOSS = torch.ones((), requires_grad=True)


class Returning(Method):
    """Returns what it is told to."""

    name = "returning"

    def __init__(self, result: Any):
        super().__init__()
        self.result = result

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        return self.result


def ask(result: Any) -> Any:
    return Objective(nn.Identity(), Returning(result))(None)


def test_a_loss_alone_or_with_parts_is_taken() -> None:
    assert ask(LOSS) == (LOSS, {})
    assert ask((LOSS, {"part": LOSS})) == (LOSS, {"part": LOSS})


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (torch.ones(3, requires_grad=True), r"not a tensor of shape \(3,\)"),
        (torch.ones(()), "without a gradient"),
        (1.0, "not a float"),
        (None, "not a NoneType"),
        ((LOSS, {}, 1), "not a tuple"),
        ((LOSS, [LOSS]), "parts as a dictionary"),
        ((LOSS, {"part": 1.0}), "parts as a dictionary"),
        ((LOSS, {"part": torch.ones(2)}), "parts as a dictionary"),
        ((LOSS, {"loss": LOSS}), "must not name a part loss"),
        ((LOSS, {"epoch": LOSS}), "must not name a part epoch"),
    ],
)
def test_anything_else_is_named(result: Any, words: str) -> None:
    with pytest.raises(SmoothctlError, match=f"method returning .*{words}"):
        ask(result)
