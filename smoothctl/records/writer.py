"""Writing logs: appending, going on, sorting, and joining what several processes wrote."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smoothctl.base import console, files
from smoothctl.base.errors import UsageError
from smoothctl.records.log import complete_lines, settings_path
from smoothctl.records.schema import Sidecar, checked

FORMAT = 1


def part_path(log: Path, rank: int) -> Path:
    """Where a worker other than the first appends; it is taken into the log in the end."""
    return log.with_name(f"{log.name}.worker{rank}")


@dataclass(frozen=True)
class Writer:
    """Appends rows to a log under way; ``done`` holds the indices that it had before.

    ``beside`` is the settings file, and ``lines`` everything that the log holds, so that a log that vanishes meanwhile
    is written again.
    """

    path: Path
    columns: tuple[str, ...]
    done: frozenset[int]
    beside: Mapping[str, Any] | None = None
    lines: list[str] = field(default_factory=list)

    def on_record(self) -> set[int]:
        """The indices that the log holds now."""
        return {index for index, _ in indexed(self.path, read_own_lines(self.path)[0][1:])}

    def absorb(self) -> frozenset[int]:
        """Take in, and then remove, what other workers left in part files; return its indices."""
        taken: set[int] = set()
        for part in sorted(self.path.parent.glob(f"{self.path.name}.worker*")):
            with files.exclusive(part):
                rows = indexed(part, read_own_lines(part)[0])
                fresh = {index: line for index, line in rows if index not in self.done}
                self._put(list(fresh.values()))
                part.unlink()
            taken |= set(fresh)
        return frozenset(taken)

    def append(self, **cells: Any) -> None:
        """Put one image on disk; it is there when this returns."""
        self._put(["\t".join(_cell(cells[name]) for name in self.columns)])

    def note_progress(self, done: int, planned: int) -> None:
        """Say how much of what is planned is on record already."""
        if done == planned:
            console.note(f"{self.path} is finished ({planned} images with the same settings); nothing to do")
        elif done:
            console.note(f"going on with {self.path}: {done} of {planned} images are on record")

    def _put(self, lines: Sequence[str]) -> None:
        """Append lines to the file on disk, or write it again, whole, if it has vanished."""
        self.lines.extend(lines)
        try:
            # Without O_CREAT: a file that is not there any more must not begin in the middle.
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:
            self._restore()
            return
        with os.fdopen(handle, "a", encoding="utf-8", newline="") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())

    def _restore(self) -> None:
        console.warn(f"{self.path} vanished while it was being written; it is written again, whole")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.beside is not None:
            files.write_json(settings_path(self.path), self.beside)
        write_lines(self.path, self.lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    return str(value).replace("\t", " ").replace("\n", " ")


@contextmanager
def open_log(
    path: Path,
    columns: tuple[str, ...],
    settings: Mapping[str, Any],
    about: Mapping[str, Any],
    indices: Collection[int],
    overwrite: bool,
) -> Iterator[Writer]:
    """Begin a log or go on with it, alone; the rule is that of :mod:`smoothctl.outputs`.

    Going on drops a last line that was cut short and the rows of images that failed.
    ``settings`` decide the rows of the images ``indices``; ``about`` is recorded besides. Raises
    UsageError if a log of other settings, or a file that is no log of ours, lies there.
    """
    check_log_name(path)
    with files.exclusive(path):
        there = read_settings(path)
        if path.exists() and there is None:
            missing = settings_path(path).name
            raise UsageError(
                f"{path} exists and has no {missing}, so it is not known how it was made; choose another `out`"
            )
        if path.exists() and there is not None and not overwrite:
            files.require_same(there["settings"], settings, path)
            done = _rows_on_record(path, columns, indices)
        else:
            path.unlink(missing_ok=True)
            there = {"format": FORMAT, "settings": settings, "planned": len(indices), "about": about}
            files.write_json(settings_path(path), there)
            write_lines(path, ["\t".join(columns)])
            done = frozenset()
        yield Writer(path, columns, done, there, read_own_lines(path)[0])
        _sort(path)


def note_stop(path: Path, reason: str | None) -> None:
    """Record beside a log why it holds fewer images than were planned; None takes such a note away."""
    there = read_settings(path)
    if there is None or there.get("about", {}).get("stopped") == reason:
        return
    about = {name: value for name, value in there.get("about", {}).items() if name != "stopped"}
    if reason is not None:
        about["stopped"] = reason
    files.write_json(settings_path(path), {**there, "about": about})


def check_log_name(path: Path) -> None:
    """Raise UsageError for a log that would not end in .tsv: its settings lie beside it in .json."""
    if path.suffix != ".tsv":
        raise UsageError(f"`out={path}`: a log's name ends in .tsv")


def read_settings(path: Path) -> dict[str, Any] | None:
    """What lies beside a log, or None; raises UsageError if it is something else than a log's settings, and
    SmoothctlError, naming the entry, if these are damaged."""
    sidecar = settings_path(path)
    if not sidecar.exists():
        return None
    there = files.read_json(sidecar)
    if not isinstance(there, dict) or not isinstance(there.get("settings"), dict) or "planned" not in there:
        raise UsageError(f"{sidecar} does not hold the settings of a log; choose another `out`")
    checked(Sidecar, there, f"{sidecar}, the settings of {path.name},")
    return there


def _rows_on_record(path: Path, columns: tuple[str, ...], indices: Collection[int]) -> frozenset[int]:
    """The images that are done; cut and failed rows are taken out. Raises UsageError for a damaged log."""
    remedy = "choose another `out`, or `overwrite` to start anew"
    lines, whole = read_own_lines(path)
    if not lines or lines[0] != "\t".join(columns):
        raise UsageError(f"{path} is damaged: its first line is not a log's header; {remedy}")
    rows = indexed(path, lines[1:])
    places = [index for index, _ in rows]
    if len(set(places)) < len(places):
        raise UsageError(f"{path} is damaged: an idx is repeated; {remedy}")
    if strange := sorted(set(places) - set(indices)):
        raise UsageError(f"{path} holds idx {strange[0]}, which is not one of the images asked for; {remedy}")
    if odd := [index for index, line in rows if line.count("\t") != len(columns) - 1]:
        raise UsageError(f"{path} is damaged: the row of idx {odd[0]} is not a row of this log; {remedy}")
    done = {index: line for index, line in rows if line.endswith("\tok")}
    if not whole or len(done) < len(rows):
        write_lines(path, [lines[0], *done.values()])
    return frozenset(done)


def _sort(path: Path) -> None:
    """Put the rows of a log in the order of their images, which may have been decided in another."""
    (header, *rows), _ = read_own_lines(path)
    ordered = [line for _, line in sorted(indexed(path, rows))]
    if ordered != rows:
        write_lines(path, [header, *ordered])


def read_own_lines(path: Path) -> tuple[list[str], bool]:
    """The complete lines of a log of ours, and whether there are no others. Raises UsageError for what is no text."""
    try:
        lines, cut = complete_lines(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is damaged, or no log: it is no text ({error})") from None
    return lines, not cut


def indexed(path: Path, rows: Sequence[str]) -> list[tuple[int, str]]:
    """The rows of a log with their indices. Raises UsageError for a row that does not begin with one."""
    texts = [row.partition("\t")[0] for row in rows]
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise UsageError(f"{path} is damaged: a row does not begin with an index (but with {text[:40]!r})")
    return list(zip(map(int, texts), rows, strict=True))


def write_lines(path: Path, lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    files.replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline=""))
