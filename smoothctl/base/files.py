"""Writing without losing anything: one writer a file, atomic replacement, and one rule.

The rule of every command that writes: nothing there yet, it starts; unfinished with the same
settings, it goes on; finished, it says so and touches nothing; other settings, it refuses and names
the differences; ``--overwrite`` starts anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from smoothctl.base.errors import SmoothctlError, UsageError


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold ``path`` for this process alone; the lock ends with the process, however it ends.

    Raises SmoothctlError with the process id of another holder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock_path = path.with_name(f".{path.name}.lock")
    holder_path = path.with_name(f".{path.name}.pid")
    lock = _acquired(path, lock_path, holder_path)
    try:
        holder_path.write_text(str(os.getpid()))
        yield
    finally:
        # While the lock is held: whoever opened this file before finds, once it has the lock, that it is gone.
        holder_path.unlink(missing_ok=True)
        lock_path.unlink(missing_ok=True)
        lock.release()


def _acquired(path: Path, lock_path: Path, holder_path: Path) -> FileLock:
    while True:
        made = not lock_path.exists()
        lock = FileLock(lock_path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            holder = holder_path.read_text().strip() if holder_path.exists() else "unknown"
            raise SmoothctlError(f"{path} is being written by process {holder}") from None
        except (OSError, NotImplementedError) as error:
            if made:
                lock_path.unlink(missing_ok=True)
            reason = getattr(error, "strerror", None) or error
            raise SmoothctlError(
                f"{lock_path} cannot be locked ({reason}); write to a folder of yours on a file system that has locks"
            ) from None
        if _is_at(lock, lock_path):
            return lock
        lock.release()


def _is_at(lock: FileLock, path: Path) -> bool:
    """Whether the file that is locked is the one at ``path``, and not one that its last holder took away."""
    descriptor = lock._context.lock_file_fd
    try:
        return descriptor is not None and os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Have ``write(temporary)`` make a file and put it at ``path`` in one step, or not at all.

    Raises SmoothctlError, or OSError, if it cannot be written: torch reports a full disk by a RuntimeError.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise
        raise SmoothctlError(
            f"{path} cannot be written; is the disk full? What lay there is as it was, and the same command goes on "
            f"({' '.join(str(error).split())})"
        ) from error


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    """Read a JSON file; raises SmoothctlError if it is not one, and for numbers that JSON has not or no float holds."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SmoothctlError(f"{path} is not valid JSON ({reason})") from None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is no finite number")
    return value


def differences(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Name the settings that differ: ``sigma 0.25 in file, 0.5 requested``."""
    plain = json.loads(json.dumps(wanted))
    return [
        f"{key} {_shown(there.get(key))} in file, {_shown(plain.get(key))} requested"
        for key in sorted({*there, *plain})
        if there.get(key) != plain.get(key)
    ]


def require_same(
    there: Mapping[str, Any],
    wanted: Mapping[str, Any],
    path: Path,
    advice: str = "Choose another `out`, or `overwrite` to start anew",
) -> None:
    """Raise UsageError, naming the differences, unless both settings are the same."""
    if different := differences(there, wanted):
        raise UsageError(f"{path} was made with other settings: {'; '.join(different)}. {advice}")


def _shown(value: Any) -> str:
    if isinstance(value, str) and len(value) == 64:
        return value[:12]
    return "(none)" if value is None else json.dumps(value).strip('"')


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
