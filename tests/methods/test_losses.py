"""Every loss against a slow, obviously right computation from its paper's formula."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from smoothctl import Batch, Draws, Method
from smoothctl.config import method_options
from smoothctl.plugins import registry

SIGMA = 0.3


def batch(teacher: nn.Module | None = None, count: int = 5) -> Batch:
    """Images 1x2x2 of three classes, with noise that a test can draw again."""
    generator = torch.Generator().manual_seed(0)
    draws = Draws(7)
    return Batch(
        torch.rand(count, 1, 2, 2, generator=generator), torch.arange(count) % 3, torch.arange(count), 0, 1, SIGMA,
        sample_noise=lambda shape: draws.normal(shape).mul_(SIGMA), sample_uniform=Draws(8).uniform, teacher=teacher,
    )  # fmt: skip


def noisy(count: int = 5) -> Tensor:
    """The images of ``batch`` with its first noise."""
    return batch(count=count).x + Draws(7).normal((count, 1, 2, 2)) * SIGMA


def linear(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 3))


def method(name: str, **options: Any) -> Method:
    found = registry().find("method", name).value
    built: Method = found(method_options(found, options))
    return built


def softmax(row: Tensor | list[float]) -> list[float]:
    powers = [math.exp(value) for value in torch.as_tensor(row).tolist()]
    return [power / sum(powers) for power in powers]


def test_gaussian_is_cross_entropy_on_one_noisy_copy() -> None:
    model = linear(0)
    loss = method("gaussian").loss(model, batch())
    rows = model(noisy())
    expected = sum(-math.log(softmax(row)[int(label)]) for row, label in zip(rows, batch().y, strict=True)) / 5
    assert loss.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("outputs", ["logits", "softmax"])
def test_crt_is_the_mean_unsquared_distance_of_outputs(outputs: str) -> None:
    student, teacher = linear(0), linear(1)
    loss, parts = method("crt", outputs=outputs).loss(student, batch(teacher))
    own, taught = student(noisy()).tolist(), teacher(noisy()).tolist()
    if outputs == "softmax":
        own, taught = [softmax(row) for row in own], [softmax(row) for row in taught]
    distances = [math.dist(first, second) for first, second in zip(own, taught, strict=True)]
    assert loss.item() == pytest.approx(sum(distances) / 5, rel=1e-5)
    assert set(parts) == {"transfer"}


def test_crt_mixes_with_cross_entropy_by_weight() -> None:
    student, teacher = linear(0), linear(1)
    loss, parts = method("crt", weight=0.25).loss(student, batch(teacher))
    assert loss.item() == pytest.approx(
        0.25 * parts["transfer"].item() + 0.75 * parts["cross_entropy"].item(), rel=1e-6
    )
    assert parts["cross_entropy"].item() == pytest.approx(method("gaussian").loss(student, batch()).item(), rel=1e-6)


@pytest.mark.parametrize("outputs", ["logits", "softmax"])
def test_crt_gradient_equals_finite_differences(outputs: str) -> None:
    student, teacher = linear(0).double(), linear(1).double()
    crt = method("crt", outputs=outputs)

    def value() -> Tensor:
        draws = Draws(7)
        double = Batch(
            batch().x.double(), batch().y, batch().index, 0, 1, SIGMA,
            sample_noise=lambda shape: draws.normal(shape).double() * SIGMA,
            sample_uniform=Draws(8).uniform, teacher=teacher,
        )  # fmt: skip
        return crt.loss(student, double)[0]

    value().backward()
    weight = student[1].weight
    assert weight.grad is not None
    with torch.no_grad():
        for place in ((0, 0), (2, 3)):
            step = 1e-6
            weight[place] += step
            above = float(value())
            weight[place] -= 2 * step
            below = float(value())
            weight[place] += step
            assert float(weight.grad[place]) == pytest.approx((above - below) / (2 * step), rel=1e-5)


def test_crt_with_a_student_equal_to_its_teacher_has_finite_gradients() -> None:
    student = linear(0)
    loss, _ = method("crt").loss(student, batch(linear(0)))
    loss.backward()
    assert loss.item() == 0.0
    assert all(torch.isfinite(parameter.grad).all() for parameter in student.parameters())
