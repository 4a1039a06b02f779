"""Several processes on one job, by torchrun's contract.

Under torchrun the images are handed out one by one as workers become free, through torch's own
store, since images cost different amounts. Each worker appends to a file of its own; the first one
puts these together when the others have finished or died.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from smoothctl.base import console, launcher
from smoothctl.base.errors import SmoothctlError
from smoothctl.base.peers import POLL_SECONDS, TIMEOUT, join_store, wait_for_keys

GRACE = 20.0
"""Seconds that the first worker, before it ends, still waits for one that has never come."""


@dataclass(frozen=True)
class Workers:
    """The processes that torchrun started, and the store that they share."""

    rank: int
    world: int
    store: Any
    timeout: float = TIMEOUT

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def announce(self, todo: Sequence[int]) -> None:
        """Say which images are to be done (the first worker only)."""
        self.store.set("todo", json.dumps({"todo": list(todo)}))

    def announce_failure(self, error: Exception) -> None:
        """Tell the others that there is nothing to do, and why."""
        self.store.set("todo", json.dumps({"error": str(error)}))
        others = [f"told-{rank}" for rank in range(1, self.world)]
        with suppress(SmoothctlError):  # the store ends with this process
            wait_for_keys(self.store, others, "the other workers to hear of a failure", GRACE)

    def todo(self) -> list[int]:
        """The announced images; raises SmoothctlError if the first worker failed."""
        wait_for_keys(self.store, ["todo"], "the first worker to say what there is to do", self.timeout)
        announced = json.loads(self.store.get("todo"))
        self.store.set(f"told-{self.rank}", "yes")
        if "error" in announced:
            raise SmoothctlError(f"worker {self.rank} has nothing to do: {announced['error']}")
        self.store.set(f"process-{self.rank}", f"{socket.gethostname()} {os.getpid()}")
        images: list[int] = announced["todo"]
        return images

    def hand_out(self, todo: Sequence[int]) -> Iterator[int]:
        """Images for this worker, each taken when it is asked for."""
        while (place := self.store.add("taken", 1) - 1) < len(todo):
            yield todo[place]

    def finish(self) -> None:
        """Say that this worker is done."""
        self.store.set(f"finished-{self.rank}", "yes")

    def wait_for_others(self) -> None:
        """Wait until every other worker has finished or died, as far as that can be seen from here."""
        waiting, start = set(range(self.world)) - {self.rank}, time.monotonic()
        while waiting:
            for rank in sorted(waiting):
                if time.monotonic() - start > GRACE and not self.store.check([f"process-{rank}"]):
                    console.warn(f"worker {rank} never came; the others did its images")
                    waiting.discard(rank)
                elif self.store.check([f"finished-{rank}"]):
                    waiting.discard(rank)
                elif self._died(rank):
                    console.warn(f"worker {rank} died")
                    waiting.discard(rank)
            time.sleep(POLL_SECONDS)

    def _died(self, rank: int) -> bool:
        if not self.store.check([f"process-{rank}"]):
            return False
        host, process = self.store.get(f"process-{rank}").decode().split()
        if host != socket.gethostname():
            return False
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return _is_zombie(int(process))


def _is_zombie(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as handle:  # noqa: PTH123 - a kernel file
            return handle.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return False


def join_workers(timeout: float = TIMEOUT) -> Workers | None:
    """The other workers, if torchrun (or whoever sets its variables) started several; else None."""
    if launcher.world_size() == 1:
        return None
    store, rank, world = join_store(timeout=timeout)
    return Workers(rank, world, store, timeout)
