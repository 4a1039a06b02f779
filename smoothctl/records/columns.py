"""The columns of logs: their names, what they hold, and how their texts are read.

A column is added here, and nowhere else. What has been read holds from then on: numbers are finite and in range,
votes are counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

# More images, classes and noise samples than anybody has; a number beyond is a slip.
LARGEST_IDX = 10**9
LARGEST_CLASS = 10**7
LARGEST_COUNT = 10**12
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
PLAIN = re.compile(r"[0-9eE.+\-\t]*")
VOTES = re.compile(r"(\d{1,7}:\d{1,12}( \d{1,7}:\d{1,12})*)?", re.ASCII)

Kind = Literal["certify", "predict"]
KINDS: tuple[Kind, ...] = ("certify", "predict")


@dataclass(frozen=True)
class Column:
    """A column of logs of these ``kinds``: whole numbers or figures from ``low`` to ``high``, or texts.

    ``absent`` is the value of a cell that is empty, and of every cell of a log without the column; a ``required`` one
    may be neither. ``seconds`` are written as clocks show them.
    """

    name: str
    dtype: type[np.int64] | type[np.float64] | None = None
    low: float = -math.inf
    high: float = math.inf
    absent: Any = ""
    kinds: tuple[Kind, ...] = KINDS
    required: bool = False
    pattern: re.Pattern[str] | None = None
    seconds: bool = False

    def values(self, texts: Sequence[str]) -> Any:
        """The column as an array [m], or a tuple of texts; raises ValueError if a cell does not fit."""
        if self.dtype is None:
            if self.pattern is not None:
                for text in texts:
                    self.value(text)
            return tuple(texts)
        if self.seconds and (fast := _clocks(texts)) is not None:
            return fast
        if not self.seconds and PLAIN.fullmatch("\t".join(texts)):
            try:
                convert = int if self.dtype is np.int64 else float
                values = np.array(list(map(convert, texts)), self.dtype)
            except (ValueError, OverflowError):
                pass
            else:
                if np.isfinite(values).all() and ((self.low <= values) & (values <= self.high)).all():
                    return values
        return np.array([self.value(text) for text in texts], self.dtype)

    def value(self, text: str) -> Any:
        """One cell; raises ValueError, saying why, if it does not fit."""
        if not text and not self.required:
            return self.absent
        if self.dtype is None:
            if self.pattern is not None and not self.pattern.fullmatch(text):
                raise ValueError(f"{text[:40]!r} in {self.name} is not written as '0:12 3:88'")
            return text
        try:
            number = _clock(text) if self.seconds else _number(text)
        except ValueError as error:
            raise ValueError(f"{self.name} {error}") from None
        if self.dtype is np.int64 and number != int(number):
            raise ValueError(f"{self.name} {text[:40]!r} is not a whole number")
        if not self.low <= number <= self.high:
            raise ValueError(f"{self.name} {text[:40]} is not between {self.low:g} and {self.high:g}")
        return self.dtype(number)

    def nothing(self, count: int) -> Any:
        """The column of a log that has none."""
        return (self.absent,) * count if self.dtype is None else np.full(count, self.absent, self.dtype)


def _number(text: str) -> float:
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a number")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is not finite")
    return value


def _clock(text: str) -> float:
    """Read ``0:00:16.301146``, ``1 day, 2:03:04``, or plain seconds."""
    days, clock = text.split(" day")[0] if " day" in text else "0", text.rsplit(", ", 1)[-1]
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + _number(part)
    return _number(days) * 86400 + seconds


def _clocks(texts: Sequence[str]) -> Any:
    """Times that are all written alike, which are most of all; None for others."""
    if not PLAIN.fullmatch("".join(texts).replace(":", "")):
        return None
    colons = {text.count(":") for text in texts}
    try:
        if colons == {0}:
            values = np.array(list(map(float, texts)))
        elif colons == {2}:
            parts = np.array(list(map(float, ":".join(texts).split(":")))).reshape(-1, 3)
            values = np.asarray(parts @ np.array([3600.0, 60.0, 1.0]))
        else:
            return None
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


COLUMNS = (
    Column("idx", np.int64, 0, LARGEST_IDX, required=True),
    Column("label", np.int64, -1, LARGEST_CLASS, required=True),
    Column("predict", np.int64, -1, LARGEST_CLASS, required=True),
    Column("radius", np.float64, 0.0, absent=math.nan, kinds=("certify",), required=True),
    Column("correct"),
    Column("time", np.float64, absent=math.nan, seconds=True),
    Column("top", np.int64, -1, LARGEST_CLASS, absent=-1),
    Column("p_lower", np.float64, 0.0, 1.0, absent=math.nan, kinds=("certify",)),
    Column("p_value", np.float64, 0.0, 1.0, absent=math.nan, kinds=("predict",)),
    Column("n", np.int64, 0, LARGEST_COUNT, absent=-1),
    Column("votes", pattern=VOTES),
    Column("selection", kinds=("certify",), pattern=VOTES),
    Column("verdict", kinds=("certify",)),
    Column("image"),
    Column("status", absent="ok"),
)
CERTIFY_COLUMNS, PREDICT_COLUMNS = (tuple(column.name for column in COLUMNS if kind in column.kinds) for kind in KINDS)
REQUIRED = tuple(column.name for column in COLUMNS if column.required and column.kinds == KINDS)
