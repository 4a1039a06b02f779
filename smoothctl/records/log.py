"""Logs of certification and prediction: reading them, also as others leave them.

A log is text with one line an image and a header that names the columns. Its first columns are the field's own, so
that everybody's scripts read it. ``STEM.json`` beside ``STEM.tsv`` says how it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smoothctl.base import files
from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.records.columns import CERTIFY_COLUMNS, COLUMNS, PREDICT_COLUMNS, REQUIRED, Kind
from smoothctl.records.lines import bare_name, complete_lines, read_lines
from smoothctl.records.schema import Sidecar, checked

__all__ = ["CERTIFY_COLUMNS", "PREDICT_COLUMNS", "Log", "Row", "complete_lines", "read_log"]


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


@dataclass(frozen=True, eq=False)
class Log:
    """A log as it was read: its columns [m] by name, in the order of ``idx``, and what lies beside it.

    ``lines`` [m] are the numbers of its lines, ``notices`` what to say of it.
    """

    path: Path
    kind: Kind
    columns: Mapping[str, Any]
    lines: NDArray[np.int64]
    settings: Mapping[str, Any] | None = None
    planned: int | None = None
    notices: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def incomplete(self) -> bool:
        return self.planned is not None and len(self) < self.planned

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the class is right and was not abstained from, [m]: worked out, whatever the log's column says."""
        predict = self.columns["predict"]
        return np.asarray((predict != ABSTAIN) & (predict == self.columns["label"]))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The log image by image."""
        columns = {name: values.tolist() if isinstance(values, np.ndarray) else values
                   for name, values in self.columns.items()}  # fmt: skip
        certifying = self.kind == "certify"
        return tuple(
            Row(
                idx=columns["idx"][at],
                label=columns["label"][at],
                predict=columns["predict"][at],
                radius=columns["radius"][at] if certifying else None,
                correct=bool(correct),
                seconds=_known(columns["time"][at]),
                top=columns["top"][at] if columns["top"][at] >= 0 else None,
                n=columns["n"][at] if columns["n"][at] >= 0 else None,
                votes=parse_votes(columns["votes"][at]),
                selection=parse_votes(columns["selection"][at]) if certifying else {},
                p_lower=_known(columns["p_lower"][at]) if certifying else None,
                verdict=columns["verdict"][at] if certifying else "",
                image=columns["image"][at],
                status=columns["status"][at],
            )
            for at, correct in enumerate(self.correct)
        )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def read_sidecar(log: Path) -> dict[str, Any]:
    """The ``settings``, ``planned`` and ``about`` beside a log; empty if there are none.

    Raises SmoothctlError, naming the entry, for a file that does not hold such things.
    """
    sidecar = settings_path(log)
    if not sidecar.exists():
        return {}
    there = checked(Sidecar, files.read_json(sidecar), f"{sidecar}, the settings of {log.name},")
    # What is null is not stated, as what is left out.
    plain = there.model_dump(exclude_unset=True, exclude_none=True)
    return {"settings": plain.get("settings", {}), "about": plain.get("about", {}), "planned": there.planned}


def settings_path(log: Path) -> Path:
    """Where the settings of a log lie."""
    return log.with_name(f"{bare_name(log)}.json")


def default_log(model: Path, what: str) -> Path:
    """Where ``certify`` and ``predict`` write unless told otherwise: in the run, or beside the model file."""
    return model / f"{what}.tsv" if model.is_dir() else model.with_name(f"{model.stem}.{what}.tsv")


def read_log(path: Path, allow_empty: bool = False) -> Log:
    """Read a log by the names of its columns; a last line that was cut short is left out.

    Raises SmoothctlError, naming the line, for a file that is not such a log or has no rows.
    """
    content = read_lines(path, REQUIRED)
    about = read_sidecar(path)
    if not content.numbers and not allow_empty:
        raise SmoothctlError(f"{path}: no rows, only a header")
    kind: Kind = "certify" if "radius" in content.header else "predict"
    wanted = [column for column in COLUMNS if kind in column.kinds]
    count = len(content.numbers)
    columns: dict[str, Any] = {}
    for column in wanted:
        texts = content.column(column.name)
        try:
            columns[column.name] = column.nothing(count) if texts is None else column.values(texts)
        except ValueError:
            raise SmoothctlError(_first_fault(content, wanted, path)) from None
    lines = np.array(content.numbers, np.int64)
    order = np.argsort(columns["idx"], kind="stable")
    if (order[1:] < order[:-1]).any():
        columns = {name: _ordered(values, order) for name, values in columns.items()}
        lines = lines[order]
    notices = content.notices
    if not content.second_header and len(twice := _rows_that_repeat(columns)):
        notices += (f"{len(twice)} rows say what another row of theirs says, and are left out",)
        kept = np.delete(np.arange(len(lines)), twice)
        columns, lines = {name: _ordered(values, kept) for name, values in columns.items()}, lines[kept]
    if len(repeated := np.flatnonzero(np.diff(columns["idx"]) == 0)):
        at = repeated[0]
        hint = (
            f"; line {content.second_header} is a second header: split the file there" if content.second_header else ""
        )
        raise SmoothctlError(
            f"{path}, line {lines[at + 1]}: idx {columns['idx'][at]} is in line {lines[at]} already; a log has one row "
            f"an image{hint}"
        )
    return Log(path, kind, columns, lines, about.get("settings"), about.get("planned"), notices, about.get("about", {}))


def _rows_that_repeat(columns: Mapping[str, Any]) -> NDArray[np.int64]:
    """Places of rows, in the order of ``idx``, that state the figures of the row before, as runs that overlap leave."""
    same = np.ones(max(0, len(columns["idx"]) - 1), bool)
    for name in ("idx", "label", "predict", "radius", "votes"):
        values = np.asarray(columns[name]) if name in columns else None
        if values is not None:
            same &= values[1:] == values[:-1]
    return np.flatnonzero(same) + 1


def _ordered(values: Any, order: NDArray[np.int64]) -> Any:
    return values[order] if isinstance(values, np.ndarray) else tuple(values[at] for at in order)


def _first_fault(content: Any, wanted: Iterable[Any], path: Path) -> str:
    """The first line that has a cell that does not fit, and which."""
    cells = {column: texts for column in wanted if (texts := content.column(column.name)) is not None}
    for at, number in enumerate(content.numbers):
        for column, texts in cells.items():
            try:
                column.value(texts[at])
            except (ValueError, OverflowError) as error:
                return f"{path}, line {number}: not a row of this log ({error})"
    raise AssertionError("a column was refused, but none of its cells")


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
