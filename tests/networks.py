"""Base classifiers whose smoothed behaviour is known exactly, or that fail in a known way."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Threshold(nn.Module):
    """Two classes: class 1 iff pixel [0,0,0] > 1/2. The true L2 radius at x is |x[0,0,0] - 1/2|, and
    p_A = Phi(|x[0,0,0] - 1/2| / sigma)."""

    def forward(self, x: Tensor) -> Tensor:
        z = x[:, 0, 0, 0] - 0.5
        return torch.stack([-z, z], dim=1)


class Constant(nn.Module):
    """Always class 2 of 3."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.eye(3)[2].repeat(len(x), 1)


class NotANumber(nn.Module):
    """Logits that are not numbers, as of a network that diverged."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.full((len(x), 3), float("nan"))


class OutsideBox(nn.Module):
    """Class 1 iff any pixel lies outside of [0,1]: class 0 means that somebody clipped."""

    def forward(self, x: Tensor) -> Tensor:
        outside = ((x < 0) | (x > 1)).flatten(1).any(dim=1).float()
        return torch.stack([1 - outside, outside], dim=1)


class BatchDependent(nn.Module):
    """Convolution, batch norm and dropout: depends on its batch if it is left in train mode."""

    def __init__(self, classes: int = 4):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(),
            nn.Linear(8 * 8 * 8, classes),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layers(x)
        return logits


def grey_images(count: int, value: float) -> Tensor:
    """Images 3x8x8 of 1/2, but for pixel [0,0,0]."""
    x = torch.full((count, 3, 8, 8), 0.5)
    x[:, 0, 0, 0] = value
    return x
