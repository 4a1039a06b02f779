"""Talking to people: results go to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

LINE_EVERY_SECONDS = 20.0
PIPE_WIDTH = 10_000
# Texts in tables wrap at this width if they must.
WRAPPED = 16
LOGGER = logging.getLogger("smoothctl")


class SmoothctlWarning(UserWarning):
    """Something that the user should look into."""


def note(message: str) -> None:
    """Say something in passing: a record of the logger ``smoothctl``, which the command line prints on stderr."""
    LOGGER.info("%s", message)


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


_word: Callable[[str], str] = str


@contextmanager
def wording(word: Callable[[str], str]) -> Iterator[None]:
    """Meanwhile, print notes and warnings as ``word`` puts them, before others that wait for the same put them.

    Messages name settings in backquotes, as Python has them: `out`, or `out=runs/a`.
    """
    global _word
    before = _word

    def both(message: str) -> str:
        return before(word(message))

    _word = both
    try:
        yield
    finally:
        _word = before


def worded(message: object) -> str:
    """A message as it is printed."""
    return _word(str(message))


class _ToStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print(printable(worded(record.getMessage())), file=sys.stderr, flush=True)


def _show_warning(shown: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any) -> None:
    if issubclass(category, SmoothctlWarning):
        print(printable(f"warning: {worded(message)}"), file=sys.stderr, flush=True)
    else:
        shown(message, category, *place)


_results: TextIO | None = None


@contextmanager
def owning_stdout() -> Iterator[None]:
    """Keep stdout for results: what anything else prints meanwhile goes to stderr."""
    global _results
    before, _results = _results, sys.stdout
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _results = before


@contextmanager
def libraries_on_stderr() -> Iterator[None]:
    """Meanwhile, let what libraries write past Python to stdout go to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def stdout() -> TextIO:
    """Where results go."""
    return _results or sys.stdout


def result(message: str) -> None:
    """Print a result on stdout."""
    print(printable(message), flush=True, file=stdout())


def printable(text: str) -> str:
    """Show letters that steer a terminal, or turn the direction of writing, as escapes: names come from files."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode()
        for letter in text
    )


def table(rows: list[list[str]], header: list[str], title: str = "", ranks: Sequence[int] = ()) -> None:
    """Print a table on stdout, with figures to the right and texts to the left.

    On a terminal that is too narrow, the columns of the highest rank are left out first, and named; those of rank 0
    stay. Elsewhere it is plain text, and whole.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    terminal = stdout().isatty()
    console = Console(file=stdout(), width=None if terminal else PIPE_WIDTH, highlight=False, markup=False)
    rows = [[" ".join(printable(cell).split("\n")) for cell in row] for row in rows]
    figures = [any(_is_figure(row[at]) for row in rows) for at in range(len(header))]
    shown = list(range(len(header)))
    if terminal and ranks:
        shown = _fitting(rows, header, figures, ranks, console.width)
    drawn = Table(
        box=box.HEAVY_HEAD if terminal else None, pad_edge=terminal, padding=(0, 1) if terminal else (0, 2, 0, 0),
    )  # fmt: skip
    for at in shown:
        drawn.add_column(header[at], justify="right" if figures[at] else "left", overflow="fold", no_wrap=figures[at])
    for row in rows:
        drawn.add_row(*(row[at] for at in shown))
    if title:
        console.print(title, style="italic")  # a title of the table's would be folded at the table's width
    console.print(drawn)
    if len(shown) < len(header):
        left_out = ", ".join(name for at, name in enumerate(header) if at not in shown)
        note(
            f"[left out at {console.width} columns: {left_out}; a wider terminal shows them, as do a pipe and `format`]"
        )


def _fitting(
    rows: list[list[str]], header: list[str], figures: list[bool], ranks: Sequence[int], width: int
) -> list[int]:
    """The columns that fit: those of the highest rank go first. Texts may wrap, figures and heads may not."""
    needed = [
        max(len(header[at]), *(len(row[at]) for row in rows)) if figures[at] or not rows
        else max(len(header[at]), min(WRAPPED, max(len(row[at]) for row in rows)))
        for at in range(len(header))
    ]  # fmt: skip
    shown = list(range(len(header)))
    while sum(needed[at] + 3 for at in shown) + 1 > width and (highest := max(ranks[at] for at in shown)) > 0:
        shown = [at for at in shown if ranks[at] < highest]
    return shown


def _is_figure(cell: str) -> bool:
    return cell[:1].isdigit() or (cell[:1] in "-+~" and cell[1:2].isdigit())


Advance = Callable[..., None]


@contextmanager
def progress(what: str, total: int, quiet: bool = False) -> Iterator[Advance]:
    """Show progress on stderr: a bar with an ETA on a terminal, a line now and then elsewhere.

    Yields ``advance(steps=1, text="", total=None)``, which may correct the total; ``quiet`` shows nothing.
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

        def advance(steps: float = 1, text: str = "", total: float | None = None) -> None:
            bar.update(task, advance=steps, text=text, total=total)

        yield advance


@contextmanager
def _lines(what: str, total: float) -> Iterator[Advance]:
    start = spoken = time.monotonic()
    done, whole = 0.0, float(total)

    def advance(steps: float = 1, text: str = "", total: float | None = None) -> None:
        nonlocal done, spoken, whole
        done += steps
        whole = whole if total is None else total
        now = time.monotonic()
        if now - spoken >= LINE_EVERY_SECONDS and done:
            spoken = now
            left = max(0.0, (now - start) * (whole - done) / done)
            note(f"{what}: {done:.0f}/{whole:.0f}, {duration(left)} left{', ' + text if text else ''}")

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
