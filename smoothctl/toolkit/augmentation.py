"""Augmentations for datasets to use: of a batch on its device, and of an image that is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from smoothctl.base.draws import Draws

if TYPE_CHECKING:
    from PIL import Image


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


def random_resized_crop(image: Image.Image, size: tuple[int, int], draws: Draws) -> Image.Image:
    """A part of an image, of 8 to 100 % of its area and an aspect of 3/4 to 4/3, scaled to ``size`` (height, width).

    As ImageNet is trained on since Szegedy et al. 2015; by torchvision, whose draws the key decides.
    """
    from torchvision.transforms.v2 import RandomResizedCrop

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(draws.integers(0, 2**31 - 1, (1,))))
        cropped: Image.Image = RandomResizedCrop(size, antialias=True)(image)
    return cropped
