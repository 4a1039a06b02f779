"""Slow, obviously right computations that methods and attacks are held against, and what they are given.

All in float64; one image, one copy and one class at a time, mostly on Python's own numbers. Gradients are finite
differences, so that they share nothing with what is tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from smoothctl import Batch, Draws, Method
from smoothctl.hooks.registry import registry
from smoothctl.training.settings import method_options

SIGMA, CLASSES, SHAPE = 0.3, 3, (1, 2, 2)
STEP = 1e-5

Row = list[float]
Answers = list[list[Row]]  # [copy][image][class]


@dataclass(frozen=True)
class Case:
    """Images of three classes, with noise and uniform numbers that a test can look at.

    ``y`` are 0, 1, 2, 0, ... unless given. A method that drew noise twice would get other noise.
    """

    count: int = 5
    epoch: int = 0
    labels: Sequence[int] | None = None
    teacher: nn.Module | None = None
    teacher_sigma: float | None = None

    @property
    def x(self) -> Tensor:
        return torch.rand(self.count, *SHAPE, generator=torch.Generator().manual_seed(0)).double()

    @property
    def y(self) -> list[int]:
        return list(self.labels) if self.labels is not None else [place % CLASSES for place in range(self.count)]

    def noise(self, samples: int) -> Tensor:
        """[samples][image] noise."""
        return self._noise(Draws(7), (samples * self.count, *SHAPE)).view(samples, self.count, *SHAPE)

    def uniform(self, samples: int = 1) -> list[Row]:
        """[copy][image] numbers."""
        numbers: list[Row] = Draws(8).uniform((samples * self.count,)).view(samples, self.count).tolist()
        return numbers

    def batch(self) -> Batch:
        noise, uniform = Draws(7), Draws(8)
        return Batch(
            self.x, torch.tensor(self.y), torch.arange(self.count), self.epoch, 100, SIGMA,
            sample_noise=lambda shape: self._noise(noise, shape), sample_uniform=uniform.uniform, teacher=self.teacher,
            teacher_sigma=self.teacher_sigma,
        )  # fmt: skip

    def _noise(self, draws: Draws, shape: tuple[int, ...]) -> Tensor:
        return draws.normal(shape).double() * SIGMA


class Given(nn.Module):
    """A network whose logits [samples*B,K] are its parameters, whatever it is shown."""

    def __init__(self, logits: Tensor):
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits[: len(x)] + 0 * x.sum()


class Watched(nn.Module):
    """A network that remembers what it was shown, and in which mode it was."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network
        self.seen: list[Tensor] = []
        self.modes: list[bool] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.detach())
        self.modes.append(self.training)
        logits: Tensor = self.network(x)
        return logits


def network(seed: int = 0, scale: float = 2.0) -> nn.Module:
    """A small network that is not linear, with weights ``scale`` times as large as usual."""
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(SHAPE), 5), nn.Tanh(), nn.Linear(5, CLASSES)).double()
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.mul_(scale)
    return layers


def method(name: str, **options: Any) -> Method:
    found = registry().find("method", name).value
    built: Method = found(method_options(found, options))
    return built


def hold(method: Method, model: nn.Module, case: Case, slow: Callable[[], float], rel: float = 1e-6) -> dict[str, Any]:
    """Compare a loss and its gradient with ``slow``, which reads the model's weights; returns the loss's parts."""
    model.zero_grad()
    result = method.loss(model, case.batch())
    loss, parts = result if isinstance(result, tuple) else (result, {})
    assert loss.item() == pytest.approx(slow(), rel=rel, abs=1e-12)
    loss.backward()
    for parameter in model.parameters():
        expected = differences(lambda _: slow(), parameter.data)
        found = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(found, expected, rtol=max(1e-5, 10 * rel), atol=1e-7)
    return {name: value.item() for name, value in parts.items()}


def differences(value: Callable[[Tensor], float], at: Tensor) -> Tensor:
    """Gradient of a function of a tensor by central differences; the tensor is changed and put back."""
    gradient = torch.zeros_like(at)
    flat, places = at.view(-1), gradient.view(-1)
    for place in range(len(flat)):
        before = float(flat[place])
        flat[place] = before + STEP
        above = value(at)
        flat[place] = before - STEP
        below = value(at)
        flat[place] = before
        places[place] = (above - below) / (2 * STEP)
    return gradient


def answers(model: nn.Module, images: Tensor, noise: Tensor) -> Answers:
    """Logits [copy][image][class] of images [B,...] under noise [samples,B,...], one at a time."""
    with torch.no_grad():
        return [
            [model((image + one).unsqueeze(0))[0].tolist() for image, one in zip(images, copy, strict=True)]
            for copy in noise
        ]


def softmax(row: Row) -> Row:
    powers = [math.exp(value - max(row)) for value in row]
    return [power / sum(powers) for power in powers]


def cross_entropy(row: Row, label: int) -> float:
    return max(row) - row[label] + math.log(sum(math.exp(value - max(row)) for value in row))


def divergence(p: Row, q: Row) -> float:
    """KL(p || q)."""
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def entropy(p: Row) -> float:
    return -sum(a * math.log(a) for a in p if a > 0)


def mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def vote(rows: Sequence[Row]) -> Row:
    """Mean of the probabilities of one image's samples."""
    return [mean(column) for column in zip(*(softmax(row) for row in rows), strict=True)]


def place(p: Row) -> int:
    return p.index(max(p))


def norm(x: Tensor) -> float:
    return math.sqrt(sum(value * value for value in x.flatten().tolist()))


def soft_loss(model: nn.Module, image: Tensor, label: int, noise: Tensor) -> float:
    """-log of the averaged softmax of one image [C,H,W] for its label, under noise [samples,C,H,W]."""
    rows = [row for (row,) in answers(model, image.unsqueeze(0), noise.unsqueeze(1))]
    return -math.log(vote(rows)[label])


def ascent(value: Callable[[Tensor], float], at: Tensor) -> Tensor:
    """The direction, of length one, in which a function grows fastest."""
    gradient = differences(value, at.clone())
    return gradient / norm(gradient)


def shortened(delta: Tensor, longest: float) -> Tensor:
    return delta * (longest / norm(delta)) if norm(delta) > longest else delta


def pgd(model: nn.Module, case: Case, samples: int, epsilon: float, steps: int) -> Tensor:
    """Salman et al. 2019, algorithm 1, image by image."""
    found = []
    for x, label, noise in zip(case.x, case.y, case.noise(samples).transpose(0, 1), strict=True):
        at = x
        for _ in range(steps):
            direction = ascent(lambda image, y=label, n=noise: soft_loss(model, image, y, n), at)
            at = (at + 2 * epsilon / steps * direction).clamp(0, 1)
            at = x + shortened(at - x, epsilon)
        found.append(at)
    return torch.stack(found)


def ddn(model: nn.Module, case: Case, samples: int, epsilon: float, steps: int) -> tuple[Tensor, list[bool]]:
    """Rony et al. 2019, algorithm 1, image by image: adversarial images, and for which an adversary was found.

    The rate falls along a cosine from 1 to 0.01, the norm changes by 5 %, perturbations are multiples of 1/255.
    """
    found, fooled = [], []
    for x, label, noise in zip(case.x, case.y, case.noise(samples).transpose(0, 1), strict=True):
        delta, length, best = torch.zeros_like(x), epsilon, None
        for step in range(1, steps + 1):
            at = x + delta
            rows = [row for (row,) in answers(model, at.unsqueeze(0), noise.unsqueeze(1))]
            wrong = place(vote(rows)) != label
            if wrong and (best is None or norm(delta) < norm(best)):
                best = delta
            rate = 0.01 + 0.99 * (1 + math.cos(math.pi * step / steps)) / 2
            direction = ascent(lambda image, y=label, n=noise: soft_loss(model, image, y, n), at)
            delta = delta + rate * direction
            length *= 0.95 if wrong else 1.05
            delta = delta * (length / norm(delta))
            delta = (x + torch.round(delta * 255) / 255).clamp(0, 1) - x
        found.append(x if best is None else x + shortened(best, epsilon))
        fooled.append(best is not None)
    return torch.stack(found), fooled
