"""Training by several processes (torchrun) that share each batch and draw what one process would draw."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
from torch import Tensor

from smoothctl.base import console, launcher
from smoothctl.base.draws import Draws
from smoothctl.base.peers import TIMEOUT, join_store, wait_for_keys


@dataclass(frozen=True)
class Group:
    """The processes of one training run; alone, a group of one."""

    rank: int = 0
    world: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes and speaks."""
        return self.rank == 0

    def share(self, batch: Sequence[int]) -> Share:
        """This process's rows of a batch. One that would have none takes a row that does not count."""
        rows = list(range(self.rank, len(batch), self.world))
        return Share(rows or [self.rank % len(batch)], len(batch), len(rows))

    def total(self, values: Tensor) -> Tensor:
        """The sum of a tensor over all processes, in each of them."""
        if self.world > 1:
            torch.distributed.all_reduce(values)
        return values

    def wait(self) -> None:
        """Wait until all processes have come here."""
        if self.world > 1:
            torch.distributed.barrier()

    def from_leader(self, value: Any) -> Any:
        """What the first process gives, in all of them."""
        held = [value]
        if self.world > 1:
            torch.distributed.broadcast_object_list(held)
        return held[0]


@dataclass(frozen=True)
class Share:
    """``rows`` of a batch of ``whole`` images, of which ``counted`` count."""

    rows: list[int]
    whole: int
    counted: int

    def draws(self, draws: Draws) -> Draws:
        """The share's part of what the whole batch would draw."""
        return draws if len(self.rows) == self.whole else _ShareOfDraws(draws, self)


class _ShareOfDraws(Draws):
    """Draws for the whole batch and keeps the rows of a share, so that processes agree with one alone.

    The first dimension of a shape counts images, or several samples of them.
    """

    def __init__(self, whole: Draws, share: Share):
        self.device, self._whole, self._share = whole.device, whole, share

    def normal(self, shape: tuple[int, ...]) -> Tensor:
        return self._keep(self._whole.normal(self._widen(shape)))

    def uniform(self, shape: tuple[int, ...]) -> Tensor:
        return self._keep(self._whole.uniform(self._widen(shape)))

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> Tensor:
        return self._keep(self._whole.integers(low, high, self._widen(shape)))

    def _widen(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[0] // len(self._share.rows) * self._share.whole, *shape[1:]

    def _keep(self, values: Tensor) -> Tensor:
        kept: Tensor = values.unflatten(0, (-1, self._share.whole))[:, self._share.rows].flatten(0, 1)
        return kept


def join_group(device: torch.device, timeout: float = TIMEOUT) -> Group:
    """The group of processes that torchrun started, or this process alone.

    Raises UsageError where WORLD_SIZE is set, as clusters do, but not the rest that torchrun sets, and SmoothctlError
    for a process that does not come.
    """
    if launcher.world_size() == 1:
        return Group()
    if not torch.distributed.is_initialized():
        # DistributedDataParallel imports it, and what it imports keeps a group that is there already alive for good.
        from torch import _dynamo  # noqa: F401

        store, rank, world = join_store(timeout=timeout)
        store.set(f"here-{rank}", "yes")
        for other in range(world):
            wait_for_keys(store, [f"here-{other}"], f"the process of rank {other}", timeout)
        backend = "nccl" if device.type == "cuda" else "gloo"
        with console.libraries_on_stderr():  # gloo tells whom it is connected to
            torch.distributed.init_process_group(backend, store=store, rank=rank, world_size=world)
        atexit.register(leave_group)
    return Group(torch.distributed.get_rank(), torch.distributed.get_world_size())


def leave_group() -> None:
    """End the group and its threads.

    Gloo's threads drop the tensors that they have sent a moment after the sender goes on. Where Python is
    ending by then, that aborts the process (pytorch/pytorch#179291), so that finished work looks failed.
    """
    gc.collect()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
