"""Logs as people's programs and editors leave them: the same figures, or one line with the remedy."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from smoothctl.base.errors import SmoothctlError
from smoothctl.records.lines import is_log
from smoothctl.records.log import REQUIRED, read_log

ROWS = [
    "idx\tlabel\tpredict\tradius\tcorrect\ttime",
    "0\t3\t3\t0.378\t1\t0:00:15.4",
    "20\t7\t-1\t0.0\t0\t0:00:15.6",
    "40\t4\t4\t0.341\t1\t0:00:15.7",
]
PLAIN = "\n".join(ROWS) + "\n"


def cells(change: Callable[[list[str]], str]) -> str:
    return "\n".join(change(row.split("\t")) for row in ROWS) + "\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        PLAIN[:-1].encode(),
        PLAIN.replace("\n", "\r\n").encode(),
        ("\ufeff" + PLAIN).encode(),
        PLAIN.encode("utf-16"),
        gzip.compress(PLAIN.encode()),
        cells(",".join).encode(),
        cells(";".join).encode(),
        cells("|".join).encode(),
        cells("   ".join).encode(),
        cells(lambda row: f"| {' | '.join(row)} |").replace("|\n", "|\n|---|:---|---:|---|---|---|\n", 1).encode(),
        cells(lambda row: ",".join(f'"{cell}"' for cell in row)).encode(),
        cells(lambda row: "\t".join([row[3], *row[:3], *row[4:]])).encode(),
        PLAIN.replace(ROWS[0], ROWS[0].upper()).encode(),
        f"# sigma 0.25\n# n 100000\n{PLAIN}".encode(),
        (PLAIN + ROWS[2] + "\n" + ROWS[1].replace("15.4", "9.9") + "\n").encode(),
    ],
    ids=[
        "plain", "no line end", "carriage returns", "byte order mark", "utf-16", "gzip", "commas", "semicolons", "bars",
        "spaces", "markdown", "quotes", "order", "capitals", "comments", "rows again",
    ],
)  # fmt: skip
def test_a_log_is_read_however_it_is_written(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    assert is_log(path, REQUIRED)
    log = read_log(path)
    found = [(row.idx, row.label, row.predict, row.radius, row.correct) for row in log.rows]
    assert found == [(0, 3, 3, 0.378, True), (20, 7, -1, 0.0, False), (40, 4, 4, 0.341, True)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PLAIN + "60\t1\t1", "the last line was cut short and is left out: '60"),
        ("\n".join(row.rsplit("\t", 2)[0] for row in ROWS), "no line end, and is taken as it is: '40"),
        (PLAIN + ROWS[1] + "\n", "1 rows say what another row of theirs says"),
        ("\n".join(f"{row}\tstatus" if at == 0 else f"{row}\tok" for at, row in enumerate(ROWS)), "was cut short"),
    ],
)
def test_what_was_assumed_is_said(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "log.tsv"
    path.write_text(content)
    (notice,) = read_log(path).notices
    assert said in notice


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no header, nor any other line; a log begins with one such as idx"),
        (b"<!DOCTYPE html><html>404</html>", "let its first line name the columns, such as idx, label, predict"),
        ("\n".join(ROWS[1:]).encode(), "let its first line name the columns, such as idx, label, predict"),
        (b"\x93NUMPY\x01\x00\xff\xfe", "cannot be read as a log: it is no text"),
        ((PLAIN + ROWS[1].replace("0.378", "0.5") + "\n").encode(), "idx 0 is in line 2 already"),
    ],
)
def test_what_is_no_log_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "log.tsv"
    path.write_bytes(content)
    with pytest.raises(SmoothctlError, match=said):
        read_log(path)
