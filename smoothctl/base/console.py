"""Talking to people: results go to stdout, everything else to stderr."""

from __future__ import annotations

import functools
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LINE_EVERY_SECONDS = 20.0
LOGGER = logging.getLogger("smoothctl")


class SmoothctlWarning(UserWarning):
    """Something that the user should look into."""


def note(message: str) -> None:
    """Say something in passing: a record of the logger ``smoothctl``, which the command line prints on stderr."""
    LOGGER.info(message)


def warn(message: str) -> None:
    """Say something that the user should look into: a warning of Python's, which the command line prints on stderr."""
    warnings.warn(message, SmoothctlWarning, stacklevel=3)


@contextmanager
def speaking() -> Iterator[None]:
    """Print notes and warnings, each time, on what stderr is when they come; and show progress, as commands do."""
    if is_speaking():
        yield
        return
    handler, level = _ToStderr(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", SmoothctlWarning)
            shown = warnings.showwarning
            warnings.showwarning = functools.partial(_show_warning, shown)
            yield
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)


def is_speaking() -> bool:
    """Whether notes are printed."""
    return any(isinstance(handler, _ToStderr) for handler in LOGGER.handlers)


class _ToStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr, flush=True)


def _show_warning(shown: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any) -> None:
    if issubclass(category, SmoothctlWarning):
        print(f"warning: {message}", file=sys.stderr, flush=True)
    else:
        shown(message, category, *place)


def result(message: str) -> None:
    """Print a result on stdout."""
    print(message, flush=True)


def table(rows: list[list[str]], header: list[str], title: str = "") -> None:
    """Print a table on stdout, with figures to the right and texts to the left."""
    from rich.console import Console
    from rich.table import Table

    drawn = Table(title=title or None, title_justify="left")
    for place, name in enumerate(header):
        figures = any(_is_figure(row[place]) for row in rows)
        drawn.add_column(name, justify="right" if figures else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    # A pipe has no width: let the table take what it needs, so that nothing is cut off there.
    Console(width=None if sys.stdout.isatty() else 300, highlight=False, markup=False).print(drawn)


def _is_figure(cell: str) -> bool:
    return cell[:1].isdigit() or (cell[:1] in "-+~" and cell[1:2].isdigit())


Advance = Callable[..., None]


@contextmanager
def progress(what: str, total: int, quiet: bool = False) -> Iterator[Advance]:
    """Show progress on stderr: a bar with an ETA on a terminal, a line now and then elsewhere.

    Yields ``advance(steps=1, text="")``; ``quiet`` shows nothing.
    """
    if quiet or not is_speaking():
        yield lambda *_: None
        return
    with _bar(what, total) if sys.stderr.isatty() else _lines(what, total) as advance:
        yield advance


@contextmanager
def _bar(what: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, text="")

        def advance(steps: float = 1, text: str = "") -> None:
            bar.update(task, advance=steps, text=text)

        yield advance


@contextmanager
def _lines(what: str, total: int) -> Iterator[Advance]:
    start = spoken = time.monotonic()
    done = 0.0

    def advance(steps: float = 1, text: str = "") -> None:
        nonlocal done, spoken
        done += steps
        now = time.monotonic()
        if now - spoken >= LINE_EVERY_SECONDS and done:
            spoken = now
            left = (now - start) * (total - done) / done
            note(f"{what}: {done:g}/{total}, {duration(left)} left{', ' + text if text else ''}")

    yield advance


def duration(seconds: float) -> str:
    """Write a duration as people say it: ``12 s``, ``3 min 5 s``, ``2 h 40 min``, ``14 days 1 h``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} days {whole % 86400 // 3600} h"
