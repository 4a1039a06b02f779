"""Augmentations of a batch on its device, for datasets to use."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from smoothctl.base.draws import Draws


def random_crop(x: Tensor, draws: Draws, padding: int = 4) -> Tensor:
    """Pad images [B,C,H,W] with zeros and cut each at a place of its own, to the same size."""
    count, _, height, width = x.shape
    padded = F.pad(x, (padding,) * 4)
    top = draws.integers(0, 2 * padding + 1, (count, 1, 1))
    left = draws.integers(0, 2 * padding + 1, (count, 1, 1))
    rows = top + torch.arange(height, device=x.device).view(1, -1, 1)
    columns = left + torch.arange(width, device=x.device).view(1, 1, -1)
    images = torch.arange(count, device=x.device).view(-1, 1, 1)
    return padded.movedim(1, -1)[images, rows, columns].movedim(-1, 1)


def random_flip(x: Tensor, draws: Draws) -> Tensor:
    """Mirror each image [B,C,H,W] left to right with probability one half."""
    flip = draws.uniform((len(x), 1, 1, 1)) < 0.5
    return torch.where(flip, x.flip(-1), x)
