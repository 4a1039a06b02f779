"""Writing logs: appending, going on, sorting, and joining what several processes wrote."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smoothctl import outputs
from smoothctl.errors import UsageError
from smoothctl.records import Log, complete_lines, read_log, settings_path
from smoothctl.sharing import Shard

FORMAT = 1
NOT_MERGED = "Nothing is merged"


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
    indices: Collection[int],
    overwrite: bool,
) -> Iterator[Writer]:
    """Begin a log or go on with it, alone; the rule is that of :mod:`smoothctl.outputs`.

    Going on drops a last line that was cut short and the rows of images that failed.
    ``settings`` decide the rows of the images ``indices``; ``about`` is recorded besides. Raises
    UsageError if a log of other settings, or a file that is no log of ours, lies there.
    """
    check_log_name(path)
    with outputs.exclusive(path):
        there = _read_sidecar(path)
        if path.exists() and there is None:
            missing = settings_path(path).name
            raise UsageError(
                f"{path} exists and has no {missing}, so it is not known how it was made; choose another --out"
            )
        if path.exists() and there is not None and not overwrite:
            outputs.require_same(there["settings"], settings, path)
            done = _rows_on_record(path, columns, indices)
        else:
            path.unlink(missing_ok=True)
            content = {"format": FORMAT, "settings": settings, "planned": len(indices), "about": about}
            outputs.write_json(settings_path(path), content)
            _write_lines(path, ["\t".join(columns)])
            done = frozenset()
        yield Writer(path, columns, done)
        _sort(path)


def check_log_name(path: Path) -> None:
    """Raise UsageError for a log that would not end in .tsv: its settings lie beside it in .json."""
    if path.suffix != ".tsv":
        raise UsageError(f"--out {path}: a log's name ends in .tsv")


def _read_sidecar(path: Path) -> dict[str, Any] | None:
    """What lies beside a log, or None; raises UsageError if it is something else than a log's settings."""
    sidecar = settings_path(path)
    if not sidecar.exists():
        return None
    there = outputs.read_json(sidecar)
    if not isinstance(there, dict) or not isinstance(there.get("settings"), dict) or "planned" not in there:
        raise UsageError(f"{sidecar} does not hold the settings of a log; choose another --out")
    return there


def _rows_on_record(path: Path, columns: tuple[str, ...], indices: Collection[int]) -> frozenset[int]:
    """The images that are done; cut and failed rows are taken out. Raises UsageError for a damaged log."""
    remedy = "choose another --out, or --overwrite to start anew"
    try:
        lines, cut = complete_lines(path.read_text(encoding="utf-8"))
        done = [_index(line) for line in lines[1:] if line.endswith("\tok")]
        places = [_index(line) for line in lines[1:]]
    except ValueError:
        raise UsageError(f"{path} is damaged: a row does not begin with an index; {remedy}") from None
    if not lines or lines[0] != "\t".join(columns):
        raise UsageError(f"{path} is damaged: its first line is not a log's header; {remedy}")
    if len(set(places)) < len(places):
        raise UsageError(f"{path} is damaged: an idx is repeated; {remedy}")
    if strange := sorted(set(places) - set(indices)):
        raise UsageError(f"{path} holds idx {strange[0]}, which is not one of the images asked for; {remedy}")
    if cut or len(done) < len(places):
        _write_lines(path, [lines[0], *(line for line in lines[1:] if line.endswith("\tok"))])
    return frozenset(done)


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


def is_merged(share: Path) -> bool:
    """Whether a log is a share, by its name, and the whole lies beside it."""
    name = re.fullmatch(r"(.+)\.share-\d+-of-\d+", share.stem)
    return name is not None and share.with_name(f"{name[1]}{share.suffix}").exists()


def merge_shares(path: Path, given: Mapping[str, Any], overwrite: bool = False) -> Log:
    """Join the logs of all shares of a job into what one process would have written.

    Raises UsageError, and writes nothing, if images are missing, if shares have other settings than
    each other or than ``given``, or other rows for an image, or if the log is there already.
    """
    parts = sorted(path.parent.glob(f"{path.stem}.share-*-of-*{path.suffix}"))
    if not parts:
        raise UsageError(f"there are no shares of {path} ({path.stem}.share-1-of-2{path.suffix} and so on)")
    if path.exists() and not overwrite:
        raise UsageError(f"{path} is there already; --overwrite replaces it, or choose another --out")
    counts = {part.stem.rsplit("-of-", 1)[1] for part in parts}
    if len(counts) > 1:
        raise UsageError(
            f"shares of {' and of '.join(sorted(counts))} lie beside each other; remove those that are not meant"
        )
    about = [_sidecar_of_share(part) for part in parts]
    first = about[0]["settings"]
    outputs.require_same({key: first.get(key) for key in given}, given, parts[0], NOT_MERGED)
    for part, other in zip(parts, about, strict=True):
        outputs.require_same(other["settings"], first, part, NOT_MERGED)
    header, lines = _joined_rows(parts)
    described = {key: value for key, value in about[0]["about"].items() if key not in ("shard", "whole")}
    whole = about[0]["about"].get("whole", len(lines))
    if len(lines) < whole:
        raise UsageError(
            f"the shares {', '.join(part.name for part in parts)} hold {len(lines)} of {whole} images; "
            "finish them all, then merge"
        )
    with outputs.exclusive(path):
        path.unlink(missing_ok=True)
        outputs.write_json(settings_path(path), {**about[0], "planned": whole, "about": described})
        _write_lines(path, [header, *(lines[index] for index in sorted(lines))])
    return read_log(path)


def _sidecar_of_share(part: Path) -> dict[str, Any]:
    there = _read_sidecar(part)
    if there is None:
        raise UsageError(f"{part} has no {settings_path(part).name}, so it is not known how it was made")
    return there


def _joined_rows(parts: Sequence[Path]) -> tuple[str, dict[int, str]]:
    """The header and the rows of several logs, by index; rows may differ in their time only."""
    lines: dict[int, str] = {}
    header = ""
    for part in parts:
        read_log(part, allow_empty=True)  # or say what is wrong with it
        (own, *rows), _ = complete_lines(part.read_text(encoding="utf-8"))
        header = header or own
        if own != header:
            raise UsageError(f"{part} has other columns than the shares before it")
        clock = header.split("\t").index("time")
        for row in rows:
            cells, there = row.split("\t"), lines.setdefault(_index(row), row).split("\t")
            if cells[:clock] + cells[clock + 1 :] != there[:clock] + there[clock + 1 :]:
                raise UsageError(f"{part} has another row for idx {_index(row)} than the shares before it")
    return header, lines
