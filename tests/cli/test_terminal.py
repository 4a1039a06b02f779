"""What a terminal shows: nothing wider than it, no figure or head broken, ACR always."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest


def shown(line: str, cwd: Path, columns: int) -> str:
    """Everything that a terminal of so many columns and 24 lines is sent, as text."""
    leader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "smoothctl", *line.split()], cwd=cwd, stdin=terminal, stdout=terminal, stderr=terminal,
        env={**environment, "TERM": "xterm-256color", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    os.close(terminal)
    sent = b""
    try:
        while part := os.read(leader, 65536):
            sent += part
    except OSError:
        pass  # the other end is closed
    os.close(leader)
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sent.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_and_break_no_figure(run_copy: Path, tmp_path: Path, columns: int) -> None:
    text = shown(f"certify {run_copy} --n 200 --max 20 --out log.tsv", tmp_path, columns)
    head = next(line for line in text.splitlines() if "r=0.00" in line)
    assert "ACR" in head
    assert not re.search(r"r=\d*\.?\s*┃\s*\d", head)
    table = [line for line in text.splitlines() if line[:1] in ("┏", "┃", "┡", "│", "└")]
    assert len(table) >= 5
    assert max(map(len, table)) <= columns
    assert re.search(r"│ +\d\.\d{4} +│", text)  # the figure of ACR
    assert ("left out at 80 columns" in text) == (columns == 80)


def test_what_the_progress_says_fits_its_line(run_copy: Path, tmp_path: Path) -> None:
    text = shown(f"certify {run_copy} --n 20000 --max 40 --batch-size 100 --out log.tsv", tmp_path, 80)
    bars = [part for part in re.split(r"[\r\n]", text) if "certify" in part and "/40" in part]
    assert bars
    assert max(map(len, bars)) <= 80
