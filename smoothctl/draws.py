"""Seeded random numbers: every draw belongs to a key, whatever the order in which keys are used."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch
from torch import Tensor


class Stream(IntEnum):
    """What a draw is for. Streams are disjoint, so that selection never sees estimation's noise."""

    SELECT = 0
    ESTIMATE = 1
    PILOT = 2
    PREDICT = 3
    TRAIN_NOISE = 4
    TRAIN_ORDER = 5
    TRAIN_AUGMENT = 6
    EVALUATE = 7


class Draws:
    """Random tensors on a device for one key, such as (seed, image index, stream, block).

    On a CPU they come from NumPy: its seeding takes keys of any length (torch's CPU generator looks
    at 32 bits of a seed only) and its normal variates have tails beyond the 5.8 standard
    deviations at which torch's end. Elsewhere they come from the device's own generator, so that
    the same key gives other numbers on a GPU than on a CPU.
    """

    def __init__(self, seed: int, *key: int, device: torch.device | str = "cpu"):
        self.device = torch.device(device)
        sequence = np.random.SeedSequence(seed, spawn_key=key)
        if self.device.type == "cpu":
            self._numpy = np.random.Generator(np.random.SFC64(sequence))
        else:
            self._torch = torch.Generator(self.device)
            self._torch.manual_seed(int(sequence.generate_state(1, np.uint64)[0]))

    def normal(self, shape: tuple[int, ...]) -> Tensor:
        """Standard normal variates, float32."""
        if self.device.type == "cpu":
            return torch.from_numpy(self._numpy.standard_normal(shape, dtype=np.float32))
        return torch.randn(shape, generator=self._torch, device=self.device)

    def uniform(self, shape: tuple[int, ...]) -> Tensor:
        """Uniform variates in [0,1), float32."""
        if self.device.type == "cpu":
            return torch.from_numpy(self._numpy.random(shape, dtype=np.float32))
        return torch.rand(shape, generator=self._torch, device=self.device)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> Tensor:
        """Uniform integers in [low, high), int64."""
        if self.device.type == "cpu":
            return torch.from_numpy(self._numpy.integers(low, high, shape))
        return torch.randint(low, high, shape, generator=self._torch, device=self.device)

    def permutation(self, length: int) -> Tensor:
        """A random order of 0..length-1, int64 [length]."""
        if self.device.type == "cpu":
            return torch.from_numpy(self._numpy.permutation(length))
        return torch.randperm(length, generator=self._torch, device=self.device)
