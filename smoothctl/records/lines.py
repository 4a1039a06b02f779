"""The lines and cells of a log, however it is named, packed or separated."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from smoothctl.base.errors import SmoothctlError

ENDINGS = (".tsv", ".csv", ".txt", ".log")
DECIMAL_COMMA = re.compile(r"^(-?\d+),(\d+(?:[eE][+-]?\d+)?)$")
SEPARATORS = ("\t", ",", ";", "|", " ")
"""What stands between cells, the likeliest first; a space is any number of them."""
RULE = re.compile(r"\|?[\s|:-]+\|?")
"""The line below the header of a Markdown table."""
OWN = "status"
"""The last column of smoothctl's logs, whose lines all end, so that one without its end was cut."""
HEADER = "idx, label, predict, radius, correct"
LARGEST_FILE = 2**29
BEGINNING = 4096


@dataclass(frozen=True)
class Lines:
    """The cells of a log row by row in one list, the numbers of its lines, and what to say of it."""

    header: tuple[str, ...]
    cells: Sequence[str]
    numbers: Sequence[int]
    notices: tuple[str, ...] = ()
    second_header: int | None = None

    def column(self, name: str) -> Sequence[str] | None:
        """The texts of a column, or None if the log has none of that name."""
        if name not in self.header:
            return None
        return self.cells[self.header.index(name) :: len(self.header)]


def bare_name(log: Path) -> str:
    """The name of a log without the endings that logs have; a number such as 0.50 stays whole."""
    name = log.name
    for ending in (".gz", *ENDINGS):
        if name.lower().endswith(ending) and len(name) > len(ending):
            name = name[: -len(ending)]
    return name


def complete_lines(text: str) -> tuple[list[str], str]:
    """Split into lines, apart from a last one without its line end."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1], lines[-1]


def is_log(path: Path, required: Collection[str]) -> bool:
    """Whether a file begins as a log does, whatever its name."""
    try:
        with path.open("rb") as file:
            start = file.read(BEGINNING)
            if start[:2] == b"\x1f\x8b":
                file.seek(0)
                with gzip.open(file) as packed:
                    start = packed.read(BEGINNING)
        lines = _decoded(start, errors="ignore").splitlines()
    except (OSError, EOFError, zlib.error):
        return False
    header = next((line for line in lines if not line.startswith("#")), "")
    return set(required) <= set(_header(header, required)[0])


def read_lines(path: Path, required: Collection[str]) -> Lines:
    """Read the cells of a log; raises SmoothctlError, naming the line, for a file that is none."""
    lines, cut = complete_lines(_text(path))
    if not lines:
        lines, cut = [cut] if cut else [], ""
    first = next((at for at, line in enumerate(lines) if not line.startswith("#")), None)
    if first is None:
        raise SmoothctlError(f"{path}: no header, nor any other line; a log begins with one such as {HEADER}")
    header, separator = _header(lines[first], required)
    if missing := [name for name in required if name not in header]:
        raise SmoothctlError(
            f"{path}: no header with the columns {', '.join(required)} ({', '.join(missing)} not found in "
            f"{lines[first][:80]!r}); if it is a log, let its first line name the columns, such as {HEADER}"
        )
    if len(set(header)) < len(header):
        raise SmoothctlError(f"{path}: its header names a column twice ({', '.join(header)[:120]})")
    notices = []
    if cut and header[-1] != OWN and len(_split(cut, separator)) == len(header) and _split(cut, separator)[-1]:
        lines.append(cut)
        if header[-1] != "time":
            notices.append(f"the last line has no line end, and is taken as it is: {cut[:80]!r}")
    elif cut:
        notices.append(f"the last line was cut short and is left out: {cut[:80]!r}")
    numbered = [(number, line) for number, line in enumerate(lines[first + 1 :], start=first + 2) if line]
    if separator == "|":
        numbered = [(number, line) for number, line in numbered if not RULE.fullmatch(line)]
    again = [number for number, line in numbered if line == lines[first]]
    if again:
        numbered = [(number, line) for number, line in numbered if line != lines[first]]
        notices.append(f"line {again[0]} repeats the header and is left out: is this one log, or several in one file?")
    cells = _cells(path, numbered, len(header), separator)
    return Lines(header, cells, [number for number, _ in numbered], tuple(notices), again[0] if again else None)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            with gzip.open(file) if packed else file as content:
                data = content.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise SmoothctlError(f"{path} is larger than any log ({LARGEST_FILE // 2**20} MiB)")
        return _decoded(data)
    except UnicodeError:
        raise SmoothctlError(f"{path}: cannot be read as a log: it is no text") from None
    except (OSError, EOFError, zlib.error) as error:
        raise SmoothctlError(f"{path}: cannot be read ({error})") from None


def _decoded(data: bytes, errors: str = "strict") -> str:
    """Text in UTF-8, or in UTF-16 as its first bytes say, which is what spreadsheets call Unicode."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if wide else "utf-8-sig", errors=errors)


def _split(line: str, separator: str) -> list[str]:
    """The cells of a line that quotes none."""
    if separator == " ":
        return line.split()
    return [cell.strip() for cell in (line.strip().strip("|") if separator == "|" else line).split(separator)]


def _header(line: str, required: Collection[str]) -> tuple[tuple[str, ...], str]:
    """The names in a header, in small letters, and what separates them."""
    for separator in SEPARATORS:
        names = tuple(name.strip().strip('"').lower() for name in _split(line, separator))
        if set(required) <= set(names):
            return names, separator
    return (), SEPARATORS[0]


def _cells(path: Path, numbered: Sequence[tuple[int, str]], width: int, separator: str) -> list[str]:
    if separator == "\t":
        wrong = [(number, line.count("\t") + 1) for number, line in numbered if line.count("\t") != width - 1]
        cells = "\t".join(line for _, line in numbered).split("\t") if numbered and not wrong else []
    elif separator in "| ":
        split = [_split(line, separator) for _, line in numbered]
        wrong = [(number, len(row)) for (number, _), row in zip(numbered, split, strict=True) if len(row) != width]
        cells = [cell for row in split for cell in row]
    else:
        try:
            split = list(csv.reader(io.StringIO("\n".join(line for _, line in numbered)), delimiter=separator))
        except csv.Error as error:
            raise SmoothctlError(f"{path}: cannot be read as comma-separated values ({error})") from None
        if len(split) != len(numbered):
            raise SmoothctlError(f"{path}: a quotation mark in it is never closed")
        wrong = [(number, len(row)) for (number, _), row in zip(numbered, split, strict=True) if len(row) != width]
        cells = [cell.strip() for row in split for cell in row]
        if separator == ";":  # so do spreadsheets write where decimals have commas
            cells = [DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells]
    if wrong:
        number, count = wrong[0]
        raise SmoothctlError(f"{path}, line {number}: not a row of this log ({count} cells, the header has {width})")
    return cells
