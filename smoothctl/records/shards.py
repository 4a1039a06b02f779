"""Shards of a job that several processes do by themselves, and joining their logs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smoothctl.base import console, files, launcher
from smoothctl.base.errors import UsageError
from smoothctl.records.columns import CERTIFY_COLUMNS, PREDICT_COLUMNS
from smoothctl.records.log import Log, read_log, settings_path
from smoothctl.records.writer import indexed, read_own_lines, read_settings, write_lines


@dataclass(frozen=True)
class Shard:
    """The ``index``-th (from 1) of ``count`` shards of a job's images."""

    index: int
    count: int

    def of(self, indices: Sequence[int]) -> list[int]:
        """Every ``count``-th image; a shard may be empty."""
        return list(indices[self.index - 1 :: self.count])

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def read_shard(text: str, environment: Mapping[str, str] = os.environ) -> Shard:
    """Read ``2/5``, or ``slurm`` for the variables of a Slurm array; raises UsageError for anything else."""
    if text == "slurm":
        try:
            shard = Shard(*launcher.array_task(environment))
        except (KeyError, ValueError):
            raise UsageError(
                f"`shard=slurm` needs {launcher.SLURM_INDEX} and {launcher.SLURM_COUNT}, as in a Slurm array job"
            ) from None
        if shard.count == 1:
            console.warn("this Slurm array has a single task, which does all images; `shard=I/K` does a single shard")
    elif match := re.fullmatch(r"(\d+)/(\d+)", text):
        shard = Shard(int(match[1]), int(match[2]))
    else:
        raise UsageError(f"`shard={text}`: write it as 1/4, 2/4, ..., or slurm in a Slurm array job")
    if not 1 <= shard.index <= shard.count:
        raise UsageError(f"`shard={text}`: the first number goes from 1 to the second")
    return shard


def require_no_others(log: Path, shard: Shard) -> None:
    """Raise UsageError if shards of another number lie there: they hold the same images, split otherwise."""
    others = [part for part in _shares(log) if _count(part) != str(shard.count)]
    if others:
        count = _count(others[0])
        raise UsageError(
            f"shards of {count} of {log.name} lie there already ({others[0].name}), and this would be shard {shard}. "
            f"One of those {count} is done again by `shard=I/{count}`, in a Slurm array by "
            f"`shard=$SLURM_ARRAY_TASK_ID/{count}`; for another split, remove the others or choose another `out`"
        )


NOT_MERGED = "Nothing is merged"
HEADERS = tuple("\t".join(columns) for columns in (CERTIFY_COLUMNS, PREDICT_COLUMNS))


def shard_path(log: Path, shard: Shard) -> Path:
    """Where one shard of a job writes its log."""
    return log.with_name(f"{log.stem}.share-{shard.index}-of-{shard.count}{log.suffix}")


def _shares(log: Path) -> list[Path]:
    """The logs of shards that lie beside where the whole is, or is to be."""
    return sorted(log.parent.glob(f"{log.stem}.share-*-of-*{log.suffix}"))


def _count(shard: Path) -> str:
    """Of how many shards a log is one, as its name says."""
    return shard.stem.rsplit("-of-", 1)[1]


def is_merged(shard: Path) -> bool:
    """Whether a log is a shard, by its name, and the whole lies beside it."""
    name = re.fullmatch(r"(.+)\.share-\d+-of-\d+", shard.stem)
    return name is not None and shard.with_name(f"{name[1]}{shard.suffix}").exists()


def merge_shards(path: Path, given: Mapping[str, Any], overwrite: bool = False) -> Log:
    """Join the logs of all shards of a job into what one process would have written.

    Raises UsageError, and writes nothing, if images are missing, if shards have other settings than
    each other or than ``given``, or other rows for an image, or if the log is there already.
    """
    parts = _shares(path)
    if not parts:
        raise UsageError(f"there are no shards of {path} ({path.stem}.share-1-of-2{path.suffix} and so on)")
    if path.exists() and not overwrite:
        raise UsageError(f"{path} is there already; `overwrite` replaces it, or choose another `out`")
    counts = {_count(part) for part in parts}
    if len(counts) > 1:
        raise UsageError(
            f"shards of {' and of '.join(sorted(counts))} lie beside each other; remove those that are not meant"
        )
    about = [_sidecar_of_shard(part) for part in parts]
    first = about[0]["settings"]
    files.require_same({key: first.get(key) for key in given}, given, parts[0], NOT_MERGED)
    for part, other in zip(parts, about, strict=True):
        files.require_same(other["settings"], first, part, NOT_MERGED)
    header, lines = _joined_rows(parts)
    described = {key: value for key, value in about[0]["about"].items() if key not in ("shard", "whole")}
    whole = about[0]["about"].get("whole") or len(lines)
    if len(lines) < whole:
        raise UsageError(
            f"the shards {', '.join(part.name for part in parts)} hold {len(lines)} of {whole} images; "
            "finish them all, then merge"
        )
    with files.exclusive(path):
        path.unlink(missing_ok=True)
        files.write_json(settings_path(path), {**about[0], "planned": whole, "about": described})
        write_lines(path, [header, *(lines[index] for index in sorted(lines))])
    return read_log(path)


def _sidecar_of_shard(part: Path) -> dict[str, Any]:
    there = read_settings(part)
    if there is None:
        raise UsageError(f"{part} has no {settings_path(part).name}, so it is not known how it was made")
    return {"about": {}, **there}


def _joined_rows(parts: Sequence[Path]) -> tuple[str, dict[int, str]]:
    """The header and the rows of several logs, by index; rows may differ in their time only."""
    lines: dict[int, str] = {}
    header = ""
    for part in parts:
        read_log(part, allow_empty=True)  # or say what is wrong with it
        lines_of_part, _ = read_own_lines(part)
        if not lines_of_part:
            raise UsageError(f"{part} is damaged: its header was cut short")
        own, *rows = lines_of_part
        header = header or own
        if own not in HEADERS or own != header:
            raise UsageError(f"{part} has other columns than the shards before it, or than a shard of smoothctl has")
        clock = header.split("\t").index("time")
        for index, row in indexed(part, rows):
            cells, there = row.split("\t"), lines.setdefault(index, row).split("\t")
            if cells[:clock] + cells[clock + 1 :] != there[:clock] + there[clock + 1 :]:
                raise UsageError(f"{part} has another row for idx {index} than the shards before it")
    return header, lines
