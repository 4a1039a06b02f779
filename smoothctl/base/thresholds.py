"""Integers with exactly known probabilities, from uniform 64-bit integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CHUNK = 2**15
"""Numbers to work on at a time: few enough for a core's own cache."""
SHORT = 16
"""Bits that decide most draws by a table."""


class Thresholds:
    """The law of ``lowest`` + the number of thresholds that a uniform integer below 2^64 reaches.

    P(outcome <= lowest + k) is ``values[k]`` / 2^64, exactly. ``values`` rise, from 1 to 2^64 - 1; ties are
    outcomes of probability 0. ``reach`` is the largest outcome in absolute value. Raises ValueError for others.
    """

    def __init__(self, lowest: int, values: Sequence[int]):
        if not values or list(values) != sorted(values) or values[0] < 1 or values[-1] >= 2**64:
            raise ValueError("thresholds must rise within 1 to 2^64 - 1")
        self.lowest, self.values = lowest, np.array(values, np.uint64)
        self.reach = max(abs(lowest), abs(lowest + len(values)))
        self.dtype: type[np.signedinteger] = np.int16 if self.reach < np.iinfo(np.int16).max else np.int32
        self._on: dict[torch.device, Tensor] = {}

    def __len__(self) -> int:
        return len(self.values)

    def draw(self, count: int, random_words: Callable[[int], NDArray[np.uint64]]) -> NDArray[np.signedinteger]:
        """Draw integers [count]: 16 bits and a table decide most; the rest take 48 bits more.

        Which words are taken depends on the words and the thresholds only.
        """
        outcomes, first, crowded = self._tables
        short = random_words(-(-count // 4)).view(np.uint16)[:count]
        drawn = np.empty(count, self.dtype)
        open_places = []
        for start in range(0, count, CHUNK):
            part = drawn[start : start + CHUNK]
            np.take(outcomes, short[start : start + CHUNK], out=part, mode="clip")
            open_places.append(np.flatnonzero(part == self._undecided) + start)
        places = np.concatenate(open_places)
        buckets = short[places]
        words = (buckets.astype(np.uint64) << np.uint64(64 - SHORT)) | (random_words(len(places)) >> np.uint64(SHORT))
        reached = first[buckets]
        reached += words >= self.values[reached]
        several = np.flatnonzero(crowded[buckets])
        reached[several] = np.searchsorted(self.values, words[several], side="right")
        drawn[places] = reached + self.lowest
        return drawn

    def search(self, words: Tensor) -> Tensor:
        """The integers of uniform int64 words, on their device."""
        if words.device not in self._on:
            signed = (self.values ^ np.uint64(2**63)).view(np.int64)
            self._on[words.device] = torch.from_numpy(signed).to(words.device)
        reached = torch.searchsorted(self._on[words.device], words, right=True, out_int32=True)
        return (reached + self.lowest).to(torch.int16 if self.dtype is np.int16 else torch.int32)

    @property
    def _undecided(self) -> int:
        return int(np.iinfo(self.dtype).max)

    @cached_property
    def _tables(self) -> tuple[NDArray[np.signedinteger], NDArray[np.int64], NDArray[np.bool_]]:
        """By the highest 16 bits: the outcome (or "undecided"), the thresholds reached at least, whether several
        thresholds are left."""
        starts = np.arange(2**SHORT, dtype=np.uint64) << np.uint64(64 - SHORT)
        least = np.searchsorted(self.values, starts, side="right")
        most = np.searchsorted(self.values, starts | np.uint64(2 ** (64 - SHORT) - 1), side="right")
        outcomes = np.where(least == most, least + self.lowest, self._undecided).astype(self.dtype)
        return outcomes, least, most - least > 1
