"""Writing logs: appending, going on, sorting, and joining what several processes wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smoothctl import outputs
from smoothctl.errors import UsageError
from smoothctl.records import Log, complete_lines, read_log, settings_path
from smoothctl.sharing import Shard

FORMAT = 1


def part_path(log: Path, rank: int) -> Path:
    """Where a worker other than the first appends; it is taken into the log in the end."""
    return log.with_name(f"{log.name}.worker{rank}")


@dataclass(frozen=True)
class Writer:
    """Appends rows to a log under way; ``done`` holds the indices that it had before."""

    path: Path
    columns: tuple[str, ...]
    done: frozenset[int]

    def on_record(self) -> set[int]:
        """The indices that the log holds now."""
        lines, _ = complete_lines(self.path.read_text(encoding="utf-8"))
        return {_index(line) for line in lines[1:]}

    def absorb(self) -> frozenset[int]:
        """Take in, and then remove, what other workers left in part files; return its indices."""
        taken: set[int] = set()
        for part in sorted(self.path.parent.glob(f"{self.path.name}.worker*")):
            with outputs.exclusive(part):
                lines, _ = complete_lines(part.read_text(encoding="utf-8"))
                fresh = [line for line in lines if _index(line) not in self.done]
                with self.path.open("a", encoding="utf-8", newline="") as handle:
                    handle.writelines(f"{line}\n" for line in fresh)
                    handle.flush()
                    os.fsync(handle.fileno())
                part.unlink()
            taken |= {_index(line) for line in fresh}
        return frozenset(taken)

    def append(self, **cells: Any) -> None:
        """Put one image on disk; it is there when this returns."""
        text = "\t".join(_cell(cells[name]) for name in self.columns) + "\n"
        with self.path.open("a", encoding="utf-8", newline="") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())


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
    planned: int,
    overwrite: bool,
) -> Iterator[Writer]:
    """Begin a log or go on with it, alone; the rule is that of :mod:`smoothctl.outputs`.

    Going on drops a last line that was cut short and the rows of images that failed.

    ``settings`` decide the rows, ``about`` is recorded besides. Raises UsageError if a log of other
    settings, or a file that is no log of ours, lies there.
    """
    with outputs.exclusive(path):
        if path.exists() and not overwrite:
            done = _rows_on_record(path, settings)
        else:
            path.unlink(missing_ok=True)
            outputs.write_json(
                settings_path(path),
                {"format": FORMAT, "settings": settings, "planned": planned, "about": about},
            )
            _write_lines(path, ["\t".join(columns)])
            done = frozenset()
        yield Writer(path, columns, done)
        _sort(path)


def _rows_on_record(path: Path, settings: Mapping[str, Any]) -> frozenset[int]:
    sidecar = settings_path(path)
    if not sidecar.exists():
        raise UsageError(
            f"{path} exists and has no {sidecar.name}, so it is not known how it was made; choose another --out"
        )
    outputs.require_same(outputs.read_json(sidecar)["settings"], settings, path, "--out")
    lines, cut = complete_lines(path.read_text(encoding="utf-8"))
    good = [line for line in lines[1:] if line.endswith("\tok")]
    if cut or len(good) < len(lines) - 1:
        _write_lines(path, [lines[0], *good])
    return frozenset(_index(line) for line in good)


def _sort(path: Path) -> None:
    """Put the rows of a log in the order of their images, which may have been decided in another."""
    (header, *rows), _ = complete_lines(path.read_text(encoding="utf-8"))
    ordered = sorted(rows, key=_index)
    if ordered != rows:
        _write_lines(path, [header, *ordered])


def _index(line: str) -> int:
    return int(line.split("\t", 1)[0])


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    outputs.replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline=""))


def share_path(log: Path, share: Shard) -> Path:
    """Where one share of a job writes its log."""
    return log.with_name(f"{log.stem}.share-{share.index}-of-{share.count}{log.suffix}")


def merge_shares(path: Path, overwrite: bool = False) -> Log:
    """Join the logs of all shares of a job into what one process would have written.

    Raises UsageError if there are none, if they have other settings or other rows for an image, or if
    the log is there already. Images that no share holds leave the log incomplete.
    """
    parts = sorted(path.parent.glob(f"{path.stem}.share-*-of-*{path.suffix}"))
    if not parts:
        raise UsageError(f"there are no shares of {path} ({path.stem}.share-1-of-2{path.suffix} and so on)")
    if path.exists() and not overwrite:
        raise UsageError(f"{path} is there already; --overwrite replaces it, or choose another --out")
    about = [outputs.read_json(settings_path(part)) for part in parts]
    for part, other in zip(parts, about, strict=True):
        outputs.require_same(about[0]["settings"], other["settings"], part, "--out")
    lines: dict[int, str] = {}
    header = ""
    for part in parts:
        (header, *rows), _ = complete_lines(part.read_text(encoding="utf-8"))
        for row in rows:
            if lines.setdefault(_index(row), row) != row:
                raise UsageError(f"{part} has another row for idx {_index(row)} than the shares before it")
    whole = about[0]["about"].pop("whole")
    about[0]["about"].pop("shard")
    with outputs.exclusive(path):
        path.unlink(missing_ok=True)
        outputs.write_json(settings_path(path), {**about[0], "planned": whole})
        _write_lines(path, [header, *(lines[index] for index in sorted(lines))])
    return read_log(path)
