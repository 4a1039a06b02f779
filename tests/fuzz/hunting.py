"""Damaging a good file again and again, reading it, and telling what is neither a result nor one line."""

from __future__ import annotations

import random
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.damage import Damage

Read = Callable[[Path], object]
LARGE_BYTES, LONG_SECONDS = 1 << 30, 10


@dataclass(frozen=True)
class Reader:
    """A kind of file. ``make(folder)`` leaves a good one, with what has to lie beside it, and gives its path.

    ``share``: how many inputs it gets, where the others get one.
    """

    name: str
    make: Callable[[Path], Path]
    damages: tuple[Damage, ...]
    read: Read
    share: float = 1


@dataclass(frozen=True)
class Finding:
    """An input at which something else happened than a result or a line."""

    reader: str
    seed: int
    what: str


def hunt(reader: Reader, folder: Path, seeds: range) -> Iterator[Finding]:
    """Damage a good file by each seed, and read it: a result and an error of ours are right, anything else is told."""
    from smoothctl.base.errors import SmoothctlError

    path = reader.make(folder)
    good = path.read_bytes()
    reader.read(path)
    most = peak_bytes() + LARGE_BYTES
    for seed in seeds:
        path.write_bytes(damaged(reader, good, seed))
        try:
            with time_limit(LONG_SECONDS), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader.read(path)
        except SmoothctlError as error:
            if "\n" in str(error):
                yield Finding(reader.name, seed, f"several lines: {error}")
        except OSError as error:
            if not error.filename:
                yield Finding(reader.name, seed, f"{type(error).__name__}: {error}")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a panic of a library too
            yield Finding(reader.name, seed, f"{type(error).__name__}: {str(error)[:200]} at {_origin(error)}")
        if (peak := peak_bytes()) > most:
            yield Finding(reader.name, seed, f"it takes more than {LARGE_BYTES >> 20} MiB")
            most = peak
    path.write_bytes(good)


def damaged(reader: Reader, good: bytes, seed: int) -> bytes:
    """What a seed makes of a good file."""
    rng = random.Random(f"{reader.name} {seed}")
    return rng.choice(reader.damages)(rng, good)


def peak_bytes() -> int:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _origin(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/smoothctl/" in frame.filename or "/plugins/" in frame.filename]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(ours[-3:]))


class TooLong(BaseException):
    """Raised in what takes too long; no handler of what files raise takes it for one of their faults."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TooLong in what takes longer."""

    def stop(*_: object) -> None:
        raise TooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
