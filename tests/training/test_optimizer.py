"""The optimiser step: published SGD, timm's names, clipping, averages, learning rates."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from smoothctl.base.errors import UsageError
from smoothctl.training.optimizer import Optimization
from smoothctl.training.settings import TrainSettings

CPU = torch.device("cpu")


def steps(model: nn.Module, optimization: Optimization, rates: list[float]) -> list[Tensor]:
    """Weights after each step on the loss sum(w^2)/2, whose gradient is w."""
    seen = []
    for rate in rates:
        optimization.step(sum(p.square().sum() / 2 for p in model.parameters()), rate)  # type: ignore[arg-type]
        seen.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    return seen


def linear() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(3, 2).double()


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_is_momentum_with_decay_on_all_parameters(nesterov: bool) -> None:
    model = linear()
    settings = TrainSettings(momentum=0.9, weight_decay=0.01, nesterov=nesterov)
    weight = torch.cat([p.detach().flatten() for p in model.parameters()])
    velocity, expected = torch.zeros_like(weight), []
    for rate in (0.1, 0.1, 0.05):
        gradient = weight + 0.01 * weight
        velocity = 0.9 * velocity + gradient
        weight = weight - rate * (gradient + 0.9 * velocity if nesterov else velocity)
        expected.append(weight)
    found = steps(model, Optimization(model, settings, CPU), [0.1, 0.1, 0.05])
    torch.testing.assert_close(torch.stack(found), torch.stack(expected))


def test_clipping_bounds_the_step() -> None:
    model = linear()
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    settings = TrainSettings(momentum=0, weight_decay=0, clip=0.01)
    (after,) = steps(model, Optimization(model, settings, CPU), [1.0])
    assert float((after - before).norm()) == pytest.approx(0.01, rel=1e-4)


def test_average_is_exponential_and_is_the_trained_model() -> None:
    model = linear()
    optimization = Optimization(model, TrainSettings(momentum=0, weight_decay=0, ema=0.75), CPU)
    seen = steps(model, optimization, [0.1] * 4)
    expected = seen[0]
    for weights in seen[1:]:
        expected = 0.75 * expected + 0.25 * weights
    average = torch.cat([p.detach().flatten() for p in optimization.trained.parameters()])
    torch.testing.assert_close(average, expected)
    assert optimization.trained is not model


@pytest.mark.parametrize("settings", [{"optimizer": "adamw", "ema": 0.9}, {"momentum": 0.9, "nesterov": True}])
def test_a_state_goes_on_exactly(settings: dict[str, object]) -> None:
    chosen = TrainSettings(**settings)  # type: ignore[arg-type]
    whole, first, second = linear(), linear(), linear()
    uninterrupted = Optimization(whole, chosen, CPU)
    steps(whole, uninterrupted, [0.1] * 4)
    stopped = Optimization(first, chosen, CPU)
    steps(first, stopped, [0.1] * 2)
    going_on = Optimization(second, chosen, CPU)
    second.load_state_dict(first.state_dict())
    going_on.load_state_dict(stopped.state_dict())
    steps(second, going_on, [0.1] * 2)
    for one, other in zip(uninterrupted.trained.parameters(), going_on.trained.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("name", "message"), [("adamv", "Did you mean"), ("adahessian", "second"), ("xyz", "timm's names")]
)
def test_an_optimizer_that_cannot_be_used_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Optimization(linear(), TrainSettings(optimizer=name), CPU)


def test_cosine_and_warm_up() -> None:
    cosine = TrainSettings(epochs=4, lr=1.0, schedule="cosine")
    assert cosine.learning_rate(0) == 1.0
    assert cosine.learning_rate(2) == pytest.approx(0.5)
    assert cosine.learning_rate(3, 1, 2) == pytest.approx((1 + math.cos(math.pi * 3.5 / 4)) / 2)
    warm = TrainSettings(epochs=4, lr=1.0, schedule="constant", warmup_epochs=2)
    assert [warm.learning_rate(epoch, step, 2) for epoch in (0, 1, 2) for step in (0, 1)] == [0.25, 0.5, 0.75, 1, 1, 1]


@pytest.mark.parametrize("name", ["sgd", "adamw", "lamb", "adafactor"])
def test_a_state_goes_on_exactly_or_is_refused_before_a_step(name: str) -> None:
    def made() -> Optimization:
        torch.manual_seed(0)
        return Optimization(nn.Linear(3, 2), TrainSettings(optimizer=name, epochs=2), CPU, 2)

    one, other = made(), made()
    one.step(one.trained(torch.ones(1, 3)).square().mean(), 0.1)
    state = copy.deepcopy(one.state_dict())
    other.trained.load_state_dict(one.trained.state_dict())
    other.load_state_dict(state)
    for optimization in (one, other):
        optimization.step(optimization.trained(torch.ones(1, 3)).square().mean(), 0.1)
    assert torch.equal(one.trained.weight, other.trained.weight)
    state["optimizer"]["param_groups"][0]["weight_decay"] = "text"
    with pytest.raises(TypeError):
        other.load_state_dict(state)
    assert torch.equal(one.trained.weight, other.trained.weight)
