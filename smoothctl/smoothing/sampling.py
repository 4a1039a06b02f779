"""Votes of the base classifier under noise: the hot loop.

A *rule* decides one image. It is a generator that asks for votes, ``Request(stream, total)``, is
sent the counts per class of the first ``total`` noise samples of that stream, and returns its
outcome; so a rule reads like the pseudo-code of its paper. The sampler below runs many rules side
by side and packs the samples that they wait for into full batches.

Noise comes in blocks of ``BLOCK`` samples, each from its own key (seed, image, stream, block), so
that the votes of an image do not depend on batch size, packing, order or subset.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic

import numpy as np
import torch
from torch import Tensor, nn

from smoothctl.base import console
from smoothctl.base.devices import torch_threads
from smoothctl.base.draws import Draws
from smoothctl.base.errors import SmoothctlError
from smoothctl.base.streams import Stream
from smoothctl.hooks.backends import Classifier
from smoothctl.hooks.noises import Noise
from smoothctl.hooks.rules import Outcome, Request, Rule, Votes
from smoothctl.smoothing.arithmetic import Arithmetic, arithmetic_for
from smoothctl.smoothing.outputs import require_logits
from smoothctl.smoothing.probe import probe_rows, require_own_rows

BLOCK = 100


@dataclass(frozen=True)
class Decided(Generic[Outcome]):
    """One image's outcome, with the seconds of computation that it took."""

    index: int
    outcome: Outcome
    seconds: float


@dataclass
class _Task(Generic[Outcome]):
    """An image under way: what its rule asked for and the votes so far, by stream."""

    index: int
    x: Tensor
    rule: Rule[Outcome]
    request: Request
    votes: dict[Stream, Votes] = field(default_factory=dict)
    drawn: dict[Stream, int] = field(default_factory=dict)
    kept: tuple[Stream, int, Tensor] | None = None
    seconds: float = 0.0

    @property
    def position(self) -> int:
        return self.drawn.get(self.request.stream, 0)

    @property
    def missing(self) -> int:
        return self.request.total - self.position

    def cuts(self, size: int) -> Iterator[_Cut[Outcome]]:
        """The parts of blocks that hold the next ``size`` samples."""
        position, end = self.position, self.position + size
        while position < end:
            block, start = divmod(position, BLOCK)
            stop = min(BLOCK, start + end - position)
            yield _Cut(self, block, start, stop)
            position += stop - start


@dataclass(frozen=True)
class _Cut(Generic[Outcome]):
    """Copies ``start`` to ``stop`` of a block of a task's stream."""

    task: _Task[Outcome]
    block: int
    start: int
    stop: int


@dataclass
class Sampler(Generic[Outcome]):
    """Runs one rule per image over a base classifier.

    ``batch_size`` bounds the memory; it is halved, once and for all, when the device runs out.
    ``on_batch`` is told the number of samples of each batch that was evaluated. ``levels``: images are multiples
    of 1/levels, and noise is added in exact arithmetic if it has a law there. ``model``, if at hand, helps to say
    why a network is refused.
    """

    classifier: Classifier
    noise: Noise
    sigma: float
    seed: int
    device: torch.device
    batch_size: int
    on_batch: Callable[[int], None] = lambda samples: None
    levels: int | None = None
    model: nn.Module | None = None
    _probed: bool = field(default=False, init=False)

    @cached_property
    def arithmetic(self) -> Arithmetic:
        """How noise is drawn and added."""
        return arithmetic_for(self.noise, self.sigma, self.levels)

    def run(
        self, images: Iterable[tuple[int, Tensor]], rule: Callable[[int], Rule[Outcome]]
    ) -> Iterator[Decided[Outcome]]:
        """Decide each (index, x [C,H,W]) by ``rule(index)``, yielding as soon as one is decided.

        Raises UsageError if the network is no function of its own row, and SmoothctlError if it gives a logit that is
        not finite.
        """
        waiting = iter(images)
        active: deque[_Task[Outcome]] = deque()
        while True:
            start = time.perf_counter()
            pieces = self._fill(active, waiting, rule)
            if not pieces:
                return
            batch = self._noisy(pieces)
            counts = self._count(batch, pieces)
            share = (time.perf_counter() - start) / len(batch)
            for (task, size), votes in zip(pieces, counts, strict=True):
                task.seconds += share * size
                _credit(task, size, votes)
            self.on_batch(len(batch))
            yield from self._advance(active)

    def _fill(
        self,
        active: deque[_Task[Outcome]],
        waiting: Iterator[tuple[int, Tensor]],
        rule: Callable[[int], Rule[Outcome]],
    ) -> list[tuple[_Task[Outcome], int]]:
        """Share the next batch out: to the images under way, oldest first, then to new ones."""
        pieces: list[tuple[_Task[Outcome], int]] = []
        room = self.batch_size
        for task in active:
            if room:
                pieces.append((task, min(room, task.missing)))
                room -= pieces[-1][1]
        while room and (following := next(waiting, None)) is not None:
            index, x = following
            self._probe(x)
            started = rule(index)
            task = _Task(index, self.arithmetic.hold(x.cpu(), f"image {index}").to(self.device), started, next(started))
            active.append(task)
            pieces.append((task, min(room, task.missing)))
            room -= pieces[-1][1]
        return pieces

    def _probe(self, x: Tensor) -> None:
        """Before the first image: refuse a network whose answers depend on more than their own row."""
        if not self._probed:
            rows = probe_rows(x.to(self.device))
            require_own_rows(self._logits, rows, self.classifier.precision, self.model)
            self._probed = True

    def _noisy(self, pieces: list[tuple[_Task[Outcome], int]]) -> Tensor:
        """The samples of a batch: each image plus its next noise, never clipped."""
        slices = [cut for task, size in pieces for cut in task.cuts(size)]
        batch = torch.empty(sum(size for _, size in pieces), *pieces[0][0].x.shape, device=self.device)
        at = 0
        # Torch's threads would wait for more work, spinning, while the backend's own want the cores.
        with torch_threads(1 if self.classifier.own_threads else torch.get_num_threads()):
            for cut in slices:
                end = at + cut.stop - cut.start
                block = self._block(cut.task, cut.block)
                self.arithmetic.add(cut.task.x, block[cut.start : cut.stop], batch[at:end])
                at = end
        return batch

    def _block(self, task: _Task[Outcome], number: int) -> Tensor:
        """The noise of one block [BLOCK,C,H,W]; always drawn whole, so that its use cannot change it."""
        stream = task.request.stream
        if task.kept is not None and task.kept[:2] == (stream, number):
            return task.kept[2]
        shape = (BLOCK, *task.x.shape)
        if self.arithmetic.values:
            noise = self.arithmetic.part(shape, number * BLOCK, Draws(self.seed, device=self.device))
        else:
            draws = Draws(self.seed, task.index, stream, number, device=self.device)
            noise = self.arithmetic.sample(shape, draws)
        task.kept = (stream, number, noise)
        return noise

    def _count(self, batch: Tensor, pieces: list[tuple[_Task[Outcome], int]]) -> Votes:
        """Votes per piece and class, int64 [pieces,K], counted on the device."""
        logits = require_logits(self._logits(batch), len(batch))
        sizes = torch.tensor([size for _, size in pieces], device=logits.device)
        slots = torch.arange(len(pieces), device=logits.device).repeat_interleave(sizes)
        classes = logits.shape[1]
        bad = ~torch.isfinite(logits).all(dim=1)
        if bad.any():
            slot = int(slots[bad][0])
            task, size = pieces[slot]
            raise SmoothctlError(
                f"non-finite logits for idx {task.index} ({int(bad[slots == slot].sum())} of {size} samples); "
                "nothing is recorded for this image. The network may have diverged in training"
            )
        flat = torch.bincount(slots * classes + logits.argmax(dim=1), minlength=len(pieces) * classes)
        return flat.view(len(pieces), classes).cpu().numpy()

    def _logits(self, batch: Tensor) -> Tensor:
        while True:
            try:
                parts = [self.classifier.logits(part) for part in batch.split(self.batch_size)]
                return parts[0] if len(parts) == 1 else torch.cat(parts)
            except torch.OutOfMemoryError:
                if self.batch_size == 1:
                    raise SmoothctlError("the device has not enough memory for a single image") from None
                self.batch_size = max(1, self.batch_size // 2)
                console.note(f"out of memory: going on with batches of {self.batch_size}")

    def _advance(self, active: deque[_Task[Outcome]]) -> Iterator[Decided[Outcome]]:
        """Answer the requests that are complete; yield and drop the images that are decided."""
        for task in list(active):
            try:
                while task.missing <= 0:
                    task.request = task.rule.send(task.votes[task.request.stream].copy())
            except StopIteration as stop:
                active.remove(task)
                yield Decided(task.index, stop.value, task.seconds)


def _credit(task: _Task[Outcome], size: int, votes: Votes) -> None:
    stream = task.request.stream
    task.votes[stream] = task.votes.get(stream, np.zeros_like(votes)) + votes
    task.drawn[stream] = task.position + size
