"""How processes that a launcher started together find each other: torchrun's variables, and torch's store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any

from smoothctl.base import console, launcher
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.base.settings import Option, Positive, Settings

NEEDED = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
POLL_SECONDS = 0.2
PATIENCE = 5.0
"""Seconds of waiting after which it is said what for."""
TIMEOUT = 1800.0
TRY = timedelta(seconds=2)
REMEDY = "start them by torchrun -m smoothctl, or unset WORLD_SIZE to work alone"


Timeout = Annotated[Positive, Option("Seconds to wait for the other processes that torchrun started.", panel="Running")]


class Waiting(Settings):
    """How long a process waits for the others."""

    timeout: Timeout = TIMEOUT


def join_store(environment: Mapping[str, str] = os.environ, timeout: float = TIMEOUT) -> tuple[Any, int, int]:
    """The store that all processes share, this process's rank, and how many there are.

    The first process does not wait for the others here, and the others wait for it so that signals are heard. Raises
    UsageError for variables that are missing or wrong and a port that is taken, SmoothctlError after ``timeout``
    seconds.
    """
    from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

    if missing := [name for name in NEEDED if not environment.get(name)]:
        size = environment.get("WORLD_SIZE")
        raise UsageError(f"WORLD_SIZE is {size}, but {' and '.join(missing)} are not set; {REMEDY}")
    world, host = launcher.world_size(environment), environment["MASTER_ADDR"]
    try:
        rank, port = int(environment["RANK"]), int(environment["MASTER_PORT"])
    except ValueError:
        raise UsageError(
            f"RANK={environment['RANK']} and MASTER_PORT={environment['MASTER_PORT']} must be numbers; {REMEDY}"
        ) from None
    if not 0 <= rank < world:
        raise UsageError(f"RANK is {rank}, but WORLD_SIZE={world} has ranks 0 to {world - 1}; {REMEDY}")
    by_agent = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    serves = rank == 0 and not by_agent

    def connect() -> Any:
        try:
            return TCPStore(host, port, world, serves, TRY, wait_for_workers=False)
        except (RuntimeError, ValueError) as error:
            if serves:
                reason = " ".join(str(error).split())[:160]
                raise UsageError(
                    f"port {port} of {host} cannot be served ({reason}); if another job has it, choose another "
                    "MASTER_PORT"
                ) from None
            return None

    store = wait_until(connect, f"the process of rank 0 at {host}:{port}", timeout)
    store.set_timeout(timedelta(seconds=timeout))
    attempt = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"smoothctl/{attempt}", store), rank, world


def wait_for_keys(store: Any, keys: Sequence[str], what: str, timeout: float = TIMEOUT) -> None:
    """Wait until others have set these keys; raises SmoothctlError after ``timeout`` seconds."""

    def there() -> bool:
        try:
            return bool(store.check(list(keys)))
        except RuntimeError as error:
            raise SmoothctlError(f"waited for {what}, but the process of rank 0 is gone") from error

    wait_until(there, what, timeout)


def wait_until(ready: Callable[[], Any], what: str, timeout: float = TIMEOUT) -> Any:
    """Ask ``ready`` until it gives something; say what is waited for, and end on signals and after a while."""
    start = time.monotonic()
    told = False
    while not (found := ready()):
        waited = time.monotonic() - start
        if waited > timeout:
            raise SmoothctlError(f"waited {console.duration(waited)} for {what} in vain; {REMEDY}")
        if waited > PATIENCE and not told:
            told = True
            console.note(f"waiting for {what}, {console.duration(timeout)} at most")
        time.sleep(POLL_SECONDS)
    return found
