"""Seeded random numbers: every draw belongs to a key, whatever the order in which keys are used."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from smoothctl.base.thresholds import CHUNK, Thresholds


class Draws:
    """Random tensors on a device for one key, such as (seed, image index, stream, block).

    On a CPU the bits come from NumPy, whose seeding takes keys of any length (torch's CPU generator
    looks at 32 bits of a seed only), and normal variates from them by Box and Muller's formula, which
    one core computes faster than torch's or NumPy's own normal variates, and to 6.66 standard deviations
    (torch's end at 5.77). Elsewhere numbers come from the device's generator, so that the same key gives
    others on a GPU than on a CPU.
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
            return torch.from_numpy(self._box_muller(math.prod(shape))).view(shape)
        return torch.randn(shape, generator=self._torch, device=self.device)

    def _box_muller(self, count: int) -> NDArray[np.float32]:
        """Box and Muller 1958: sqrt(-2 ln u) cos(2 pi v) and the same with sin, from 32 bits for u and v each."""
        half = (count + 1) // 2
        bits = self._numpy.bit_generator.random_raw(half).view(np.uint32)
        normal = np.empty(2 * half, np.float32)
        for start in range(0, half, CHUNK):
            stop = min(half, start + CHUNK)
            part, other = slice(start, stop), slice(half + start, half + stop)
            radius = bits[part].astype(np.float32)
            radius += np.float32(1.0)
            radius *= np.float32(2.0**-32)
            np.log(radius, out=radius)
            radius *= np.float32(-2.0)
            np.sqrt(radius, out=radius)
            angle = bits[other].astype(np.float32)
            angle *= np.float32(2.0 * math.pi * 2.0**-32)
            np.multiply(radius, np.cos(angle), out=normal[part])
            np.multiply(radius, np.sin(angle, out=angle), out=normal[other])
        return normal[:count]

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

    def ranks(self, thresholds: Thresholds, shape: tuple[int, ...]) -> Tensor:
        """Integers of a law that thresholds state: ``thresholds.lowest`` plus the number of thresholds that a
        uniform 64-bit integer reaches. int16 where they fit, else int32."""
        count = math.prod(shape)
        if self.device.type == "cpu":
            return torch.from_numpy(thresholds.draw(count, self._numpy.bit_generator.random_raw)).view(shape)
        words = torch.empty(count, dtype=torch.int64, device=self.device)
        words.random_(-(2**63), None, generator=self._torch)
        return thresholds.search(words).view(shape)

    def permutation(self, length: int) -> Tensor:
        """A random order of 0..length-1, int64 [length]."""
        if self.device.type == "cpu":
            return torch.from_numpy(self._numpy.permutation(length))
        return torch.randperm(length, generator=self._torch, device=self.device)
