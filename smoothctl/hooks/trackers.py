"""Who may follow a run, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Tracker:
    """Somewhere else to follow a training run, by ``--track NAME``.

    ``open(run)`` gives a context manager for one run directory; what it yields is called with each
    :class:`Event`. ``package`` is what must be installed for it.
    """

    name: str
    open: Callable[[Path], AbstractContextManager[Callable[[Event], None]]]
    package: str = ""
    summary: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Event:
    """Something that happened.

    ``kind`` is train.start, train.epoch, train.end, or certify and predict with .start, .image,
    .end; ``run`` is the run directory or log; ``data`` is plain values.
    """

    kind: str
    run: Path | None
    data: Mapping[str, Any]
