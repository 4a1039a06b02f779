"""What attacks must leave alone: the network, its mode, its gradients, and the other images of a batch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from smoothctl import attacking
from smoothctl.toolkit.attacks import ddn, pgd
from tests.networks import BatchDependent

Attack = Callable[[nn.Module, Tensor, Tensor, Tensor, float, int], Tensor]

both = pytest.mark.parametrize("attack", [pgd, ddn])


class Mixed(nn.Module):
    """Batch norm in train mode, dropout in eval mode, one frozen weight, and gradients from an earlier step."""

    def __init__(self, fails_after: int = 10**6):
        super().__init__()
        torch.manual_seed(0)
        self.body = BatchDependent()
        self.body.layers[3].eval()
        self.body.layers[0].bias.requires_grad_(False)
        self.calls, self.fails_after = 0, fails_after
        self.body(torch.rand(4, 3, 8, 8)).sum().backward()

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls > self.fails_after:
            raise RuntimeError("out of memory")
        logits: Tensor = self.body(x)
        return logits


def state(model: nn.Module) -> dict[str, Any]:
    """All that an attack could change."""
    return {
        "tensors": {name: value.clone() for name, value in model.state_dict().items()},
        "gradients": {name: copy.deepcopy(value.grad) for name, value in model.named_parameters()},
        "flags": {name: value.requires_grad for name, value in model.named_parameters()},
        "modes": {name: module.training for name, module in model.named_modules()},
    }


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert before["flags"] == after["flags"]
    assert before["modes"] == after["modes"]
    assert {True, False} <= set(before["modes"].values()) & set(before["flags"].values())
    for kind in ("tensors", "gradients"):
        for name, value in before[kind].items():
            assert value is None or torch.equal(value, after[kind][name]), name


@both
@pytest.mark.parametrize("fails_after", [10**6, 0, 2])
def test_the_network_is_left_as_it_was(attack: Attack, fails_after: int) -> None:
    model = Mixed(fails_after)
    before = state(model)
    arguments = model, torch.rand(2, 3, 8, 8), torch.tensor([0, 1]), torch.zeros(4, 3, 8, 8), 0.5, 3
    if fails_after < 3:
        with pytest.raises(RuntimeError, match="out of memory"):
            attack(*arguments)
    else:
        assert not attack(*arguments).requires_grad
    assert_same(before, state(model))


@both
def test_attacks_see_the_network_in_eval_mode(attack: Attack) -> None:
    """Batch norm by its running averages and no dropout: images of a batch do not touch each other."""
    torch.manual_seed(0)
    model = BatchDependent().train()
    x, y, noise = torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 3]), 0.1 * torch.randn(4, 3, 8, 8)
    together = attack(model, x, y, noise, 0.5, 3)
    alone = torch.cat([attack(model, x[i : i + 1], y[i : i + 1], noise[i : i + 1], 0.5, 3) for i in range(4)])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@both
def test_attacks_work_where_gradients_are_switched_off(attack: Attack) -> None:
    x, y, noise = torch.full((1, 3, 8, 8), 0.5), torch.tensor([0]), torch.zeros(2, 3, 8, 8)
    model = BatchDependent()
    expected = attack(model, x, y, noise, 0.5, 3)
    with torch.no_grad():
        assert torch.equal(attack(model, x, y, noise, 0.5, 3), expected)
        assert not torch.is_grad_enabled()


def test_attacking_gives_gradients_to_inputs_only() -> None:
    model = BatchDependent()
    with attacking(model):
        x = torch.rand(1, 3, 8, 8, requires_grad=True)
        model(x).sum().backward()
    assert x.grad is not None
    assert all(parameter.grad is None for parameter in model.parameters())
