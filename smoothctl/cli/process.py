"""What a command owes to its process: streams that may be closed or full, signals, and faults of our own."""

from __future__ import annotations

import os
import platform
import shlex
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from types import FrameType

from smoothctl.base import console
from smoothctl.base.about import __version__

SECONDS_TO_END = 3.0
ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


def open_streams() -> None:
    """Put the null device where a stream was closed, so that no file we open becomes it; print what can be encoded."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open to the end
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def end_on_signals() -> None:
    """Have schedulers (SIGTERM) and closed terminals (SIGHUP) end a command as Ctrl-C does, and impatience end it once.

    Signals that are ignored, as under nohup, stay so.
    """
    ends_at = 0.0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal ends_at
        now = time.monotonic()
        if now >= ends_at:
            ends_at = now + SECONDS_TO_END
            raise KeyboardInterrupt

    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


def close_output() -> bool:
    """Write what stdout still holds and return True; drop it where its reader is gone or its disk is full.

    From here on Ctrl-C is ignored: Python forgets our handler while it ends, and the exit code would be the signal's.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
        return False
    return True


def report_fault(error: BaseException, arguments: Sequence[str], shown: bool) -> None:
    """Say in one line that ``error`` is a fault of smoothctl, and keep its traceback, or show it."""
    text = "".join(traceback.format_exception(error))
    summary = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    kept = None if shown else _kept(text, arguments)
    if kept is None:
        for line in text.splitlines():
            console.note(line)
    console.note(
        f"smoothctl: this is a bug, of smoothctl {__version__} or of a plugin ({summary}); please report it with the "
        f"traceback {f'in {kept}' if kept else 'above'}"
    )


def _kept(text: str, arguments: Sequence[str]) -> str | None:
    versions = f"smoothctl {__version__}, Python {platform.python_version()}, {platform.platform()}"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="smoothctl-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(f"{versions}\nsmoothctl {shlex.join(arguments)}\n\n{text}")
            return file.name
    except OSError:
        return None
