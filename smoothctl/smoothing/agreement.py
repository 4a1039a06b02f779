"""Whether a network that is evaluated in another way still computes what PyTorch does."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Logits = Callable[[Tensor], Tensor]

AGREEMENT = 1e-3
PROBES = 64
SIZES = [40, 17, 6, 1]
"""Batches of several sizes: an exported network may hold the size of the batch that it was exported with."""


def probe_images(shape: tuple[int, int, int], device: torch.device | str = "cpu") -> Tensor:
    """Images [N,C,H,W] of random pixels in [0,1], always the same."""
    return torch.rand(PROBES, *shape, generator=torch.Generator().manual_seed(0)).to(device)


def largest_difference(logits: Logits, reference: Logits, probes: Tensor) -> float:
    """The largest difference between logits, in units of the largest logit where that is above 1.

    Where the reference gives numbers that are not finite, so must the other: 0, else infinite. Raises whatever
    ``logits`` raises for a batch of a size that it cannot evaluate.
    """
    expected = reference(probes)
    got = torch.cat([logits(part) for part in probes.split(SIZES)])
    if not torch.isfinite(expected).all():
        return float("inf") if torch.isfinite(got).all() else 0.0  # a broken network is named where it votes
    return float((got - expected).abs().max()) / max(1.0, float(expected.abs().max()))
