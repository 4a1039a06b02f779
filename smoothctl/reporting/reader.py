"""Reading many and long logs in columns.

Only a log without any fault is read here; one with the least irregularity is left to
:func:`smoothctl.records.read_log`, which decides what it means and words the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from smoothctl.hooks.noises import ABSTAIN
from smoothctl.records.log import LARGEST_IDX, complete_lines, parse_seconds, read_log, read_sidecar
from smoothctl.reporting.frames import Frame, from_log

REQUIRED = ("idx", "label", "predict")


def read_frame(path: Path) -> Frame:
    """Read a log; raises SmoothctlError, naming the line, for a file that is none or has no rows."""
    return _read_columns(path) or from_log(read_log(path))


def _read_columns(path: Path) -> Frame | None:
    """Read a faultless log; None for any other."""
    try:
        lines, cut = complete_lines(path.read_text(encoding="utf-8-sig"))
        if cut or len(lines) < 2:
            return None
        header = lines[0].split("\t")
        if any(name not in header for name in REQUIRED) or {line.count("\t") for line in lines} != {len(header) - 1}:
            return None
        cells = "\t".join(lines[1:]).split("\t")
        return _frame(path, {name: cells[place :: len(header)] for place, name in enumerate(header)})
    except (OSError, ValueError, OverflowError):
        return None


def _frame(path: Path, columns: Mapping[str, Sequence[str]]) -> Frame | None:
    count = len(columns["idx"])
    idx, label, predict = (np.array(list(map(int, columns[name])), np.int64) for name in REQUIRED)
    radius = np.array(list(map(float, columns["radius"]))) if "radius" in columns else np.full(count, np.nan)
    if (
        idx[0] < 0
        or idx[-1] >= LARGEST_IDX
        or (np.diff(idx) <= 0).any()
        or ("radius" in columns and not ((radius >= 0) & np.isfinite(radius)).all())
    ):
        return None
    about = read_sidecar(path)
    votes, selection = (tuple(columns.get(name, ())) for name in ("votes", "selection"))
    return Frame(
        name=path.name,
        path=path,
        kind="certify" if "radius" in columns else "predict",
        idx=idx,
        label=label,
        predict=predict,
        radius=radius,
        correct=(predict != ABSTAIN) & (predict == label),
        failed=np.array([text != "ok" for text in columns["status"]]) if "status" in columns else np.zeros(count, bool),
        seconds=_seconds(columns["time"]) if "time" in columns else np.full(count, np.nan),
        top=_optional(columns.get("top"), count),
        n=_optional(columns.get("n"), count),
        votes_text=votes if any(votes) else (),
        selection_text=selection if any(selection) else (),
        settings=about.get("settings") or {},
        about=about.get("about") or {},
        planned=about.get("planned"),
    )


def _seconds(texts: Sequence[str]) -> np.ndarray:
    """Times in seconds; those of one log are mostly written alike, and read fastest so."""
    try:
        colons = {text.count(":") for text in texts}
        if colons == {0}:
            return np.array(list(map(float, texts)))
        if colons == {2}:
            parts = np.array(list(map(float, ":".join(texts).split(":")))).reshape(-1, 3)
            return np.asarray(parts @ np.array([3600.0, 60.0, 1.0]))
    except ValueError:
        pass
    return np.array([np.nan if (seconds := parse_seconds(text)) is None else seconds for text in texts])


def _optional(texts: Sequence[str] | None, count: int) -> np.ndarray:
    if texts is None:
        return np.full(count, -1, np.int64)
    return np.array([int(text) if text else -1 for text in texts], np.int64)
