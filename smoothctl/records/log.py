"""Logs of certification and prediction: schema and reading, also of other people's formats.

A log is tab-separated text with one line an image. Its first columns are the field's own, so that
everybody's scripts read it. ``STEM.json`` beside ``STEM.tsv`` says how it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from smoothctl.base import files
from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.noises import ABSTAIN

CERTIFY_COLUMNS = (
    *("idx", "label", "predict", "radius", "correct", "time"),
    *("top", "p_lower", "n", "votes", "selection", "verdict", "image", "status"),
)
PREDICT_COLUMNS = (
    *("idx", "label", "predict", "correct", "time"),
    *("top", "p_value", "n", "votes", "image", "status"),
)
FORMAT = 1


# More images than any dataset has; an idx beyond it is a slip.
LARGEST_IDX = 10**9


@dataclass(frozen=True)
class Row:
    """One image of a log. ``radius`` and ``p_lower`` are None in prediction logs; ``votes`` (of the estimation
    sample) and ``selection`` may be empty; ``status`` is ``ok``, or says why the image failed."""

    idx: int
    label: int
    predict: int
    radius: float | None
    correct: bool
    seconds: float | None = None
    top: int | None = None
    n: int | None = None
    votes: Mapping[int, int] = field(default_factory=dict)
    selection: Mapping[int, int] = field(default_factory=dict)
    p_lower: float | None = None
    verdict: str = ""
    image: str = ""
    status: str = "ok"

    @property
    def failed(self) -> bool:
        return self.status != "ok"


@dataclass(frozen=True)
class Log:
    """A log as it was read: its rows in order, its settings if there are any, and what to say of it."""

    path: Path
    kind: Literal["certify", "predict"]
    rows: tuple[Row, ...]
    settings: Mapping[str, Any] | None = None
    planned: int | None = None
    notices: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def incomplete(self) -> bool:
        return self.planned is not None and len(self.rows) < self.planned


def read_sidecar(log: Path) -> dict[str, Any]:
    """The ``settings``, ``planned`` and ``about`` beside a log; empty if there are none.

    Raises SmoothctlError for a file that does not hold such things.
    """
    sidecar = settings_path(log)
    if not sidecar.exists():
        return {}
    try:
        there = files.read_json(sidecar)
        settings, about, planned = there.get("settings") or {}, there.get("about") or {}, there.get("planned")
        for key in ("sigma", "n", "n0", "alpha"):
            float(settings.get(key) or 0)
        dict(about), dict(about.get("model") or {}), int(planned or 0)
    except (OSError, AttributeError, TypeError, ValueError):
        raise SmoothctlError(f"{log}: {sidecar.name} beside it does not hold the settings of a log") from None
    return {"settings": settings, "about": about, "planned": planned}


def settings_path(log: Path) -> Path:
    """Where the settings of a log lie."""
    return log.with_suffix(".json")


def default_log(model: Path, what: str) -> Path:
    """Where ``certify`` and ``predict`` write unless told otherwise: in the run, or beside the model file."""
    return model / f"{what}.tsv" if model.is_dir() else model.with_name(f"{model.stem}.{what}.tsv")


def read_log(path: Path, allow_empty: bool = False) -> Log:
    """Read a log by the names of its columns; a last line that was cut short is left out.

    Raises SmoothctlError, naming the line, for a file that is not such a log or has no rows.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SmoothctlError(f"{path}: cannot be read ({error})") from None
    lines, cut = complete_lines(text)
    if not lines:
        raise SmoothctlError(f"{path}: no header; expected tab-separated columns such as idx, label, predict, radius")
    header = lines[0].split("\t")
    missing = [name for name in ("idx", "label", "predict") if name not in header]
    if missing:
        raise SmoothctlError(
            f"{path}: no header with the columns idx, label, predict (found: {', '.join(header)[:80]})"
        )
    rows = tuple(_parse(path, number, header, line) for number, line in enumerate(lines[1:], start=2) if line)
    about = read_sidecar(path)
    if not rows and not allow_empty:
        raise SmoothctlError(f"{path}: no rows, only a header")
    notices = [f"the last line was cut short and is left out: {cut!r}"] if cut else []
    repeated = len(rows) - len({row.idx for row in rows})
    if repeated:
        raise SmoothctlError(f"{path}: {repeated} rows repeat an idx; a log has one row an image")
    return Log(
        path,
        "certify" if "radius" in header else "predict",
        tuple(sorted(rows, key=lambda row: row.idx)),
        about.get("settings"),
        about.get("planned"),
        tuple(notices),
        about.get("about", {}),
    )


def complete_lines(text: str) -> tuple[list[str], str]:
    """Split into lines, apart from a last one without its line end."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1], lines[-1]


def _parse(path: Path, number: int, header: Sequence[str], line: str) -> Row:
    cells = dict(zip(header, line.split("\t"), strict=False))
    try:
        radius = float(cells["radius"]) if "radius" in header else None
        row = Row(
            idx=int(cells["idx"]),
            label=int(cells["label"]),
            predict=int(cells["predict"]),
            radius=radius,
            correct=ABSTAIN != int(cells["predict"]) == int(cells["label"]),
            seconds=parse_seconds(cells.get("time", "")),
            top=int(cells["top"]) if cells.get("top") else None,
            n=int(cells["n"]) if cells.get("n") else None,
            votes=parse_votes(cells.get("votes", "")),
            selection=parse_votes(cells.get("selection", "")),
            p_lower=float(cells["p_lower"]) if cells.get("p_lower") else None,
            verdict=cells.get("verdict", ""),
            image=cells.get("image", ""),
            status=cells.get("status", "ok"),
        )
        if radius is not None and not 0.0 <= radius < float("inf"):
            raise ValueError(f"radius {radius}")
        if not 0 <= row.idx < LARGEST_IDX:
            raise ValueError(f"idx {row.idx}")
    except (KeyError, ValueError) as error:
        raise SmoothctlError(f"{path}, line {number}: not a row of this log ({error})") from None
    return row


def parse_seconds(text: str) -> float | None:
    """Read ``0:00:16.301146``, ``1 day, 2:03:04``, or plain seconds; None if there are none."""
    if not text:
        return None
    days, clock = text.split(" day")[0] if " day" in text else "0", text.rsplit(", ", 1)[-1]
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + float(part)
    return int(days) * 86400 + seconds


def format_votes(votes: Iterable[int]) -> str:
    """Counts per class as ``class:count`` pairs, without the classes that got none."""
    return " ".join(f"{place}:{int(count)}" for place, count in enumerate(votes) if count)


def parse_votes(text: str) -> dict[int, int]:
    """Read what format_votes wrote."""
    return {int(place): int(count) for place, count in (pair.split(":") for pair in text.split())}


def require_complete(log: Log) -> None:
    """Raise SmoothctlError if images of a log failed or are missing."""
    failed = [row for row in log.rows if row.failed]
    if failed:
        raise SmoothctlError(
            f"{len(failed)} of {len(log.rows)} images failed, the first is idx {failed[0].idx} ({failed[0].status}); "
            "the others are on record, and the same command tries the failed ones again"
        )
    if log.incomplete:
        raise SmoothctlError(f"{log.path} has {len(log.rows)} of {log.planned} images; the same command does the rest")
