"""Reading many and long logs in columns.

Only a log without any fault is read here; one with the least irregularity is left to
:func:`smoothctl.records.read_log`, which decides what it means and words the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from smoothctl import outputs
from smoothctl.api import ABSTAIN
from smoothctl.records import complete_lines, parse_seconds, read_log, settings_path
from smoothctl.report.frames import Frame, from_log

REQUIRED = ("idx", "label", "predict")


def read_frame(path: Path) -> Frame:
    """Read a log; raises SmoothctlError, naming the line, for a file that is none or has no rows."""
    return _read_columns(path) or from_log(read_log(path))


def _read_columns(path: Path) -> Frame | None:
    """Read a faultless log; None for any other."""
    try:
        lines, cut = complete_lines(path.read_text(encoding="utf-8-sig"))
        rows = [line.split("\t") for line in lines]
        if cut or len(rows) < 2 or len(set(map(len, rows))) != 1:
            return None
        columns = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
        if any(name not in columns for name in REQUIRED):
            return None
        return _frame(path, columns)
    except (OSError, ValueError):
        return None


def _frame(path: Path, columns: Mapping[str, Sequence[str]]) -> Frame | None:
    count = len(columns["idx"])
    idx, label, predict = (np.array(list(map(int, columns[name])), np.int64) for name in REQUIRED)
    radius = np.array(list(map(float, columns["radius"]))) if "radius" in columns else np.full(count, np.nan)
    if (np.diff(idx) <= 0).any() or ("radius" in columns and not ((radius >= 0) & np.isfinite(radius)).all()):
        return None
    sidecar = settings_path(path)
    about = outputs.read_json(sidecar) if sidecar.exists() else {}
    votes = tuple(columns.get("votes", ()))
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
        seconds=np.array([_or_nan(text) for text in columns["time"]]) if "time" in columns else np.full(count, np.nan),
        top=_optional(columns.get("top"), count),
        n=_optional(columns.get("n"), count),
        votes_text=votes if any(votes) else (),
        settings=about.get("settings") or {},
        about=about.get("about") or {},
        planned=about.get("planned"),
    )


def _or_nan(text: str) -> float:
    seconds = parse_seconds(text)
    return np.nan if seconds is None else seconds


def _optional(texts: Sequence[str] | None, count: int) -> np.ndarray:
    if texts is None:
        return np.full(count, -1, np.int64)
    return np.array([int(text) if text else -1 for text in texts], np.int64)
