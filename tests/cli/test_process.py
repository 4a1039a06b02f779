"""Streams that are closed or full, signals, and bugs: one line at most, and no traceback unless it is asked for."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smoothctl.cli import process, report
from tests.cli.conftest import Typed, finish, start

IN_SHELL = f"{sys.executable} -m smoothctl"


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What bash makes of a line."""
    return subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A command with a bug; returns where tracebacks are kept."""
    monkeypatch.setattr(process.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(report, "command", _divide)
    return tmp_path


def _divide() -> None:
    print(1 // 0)


def test_a_bug_is_one_line_that_asks_for_a_report_and_names_the_kept_traceback(typed: Typed, faulty: Path) -> None:
    done = typed("report")
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert "please report it" in done.err
    (kept,) = faulty.iterdir()
    assert re.search(rf"smoothctl \d[^ ]* .*ZeroDivisionError.*{re.escape(str(kept))}", done.err)
    assert "Traceback (most recent call last)" in kept.read_text()
    assert "smoothctl report" in kept.read_text()


def test_the_traceback_is_shown_where_it_is_asked_for(typed: Typed, faulty: Path) -> None:
    done = typed("--traceback report")
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err
    assert "traceback above" in done.err
    assert not list(faulty.iterdir())


def test_the_traceback_is_shown_where_it_cannot_be_kept(
    typed: Typed, faulty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.tempfile, "tempdir", str(faulty / "gone"))
    done = typed("report")
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_nothing(tmp_path: Path, closed: str) -> None:
    done = shell(f"{IN_SHELL} --version {closed}", tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_stdout_is_one_line(tmp_path: Path) -> None:
    done = shell(f"{IN_SHELL} --version > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "smoothctl: No space left on device\n"


def test_a_reader_that_left_is_nothing_to_speak_of(tmp_path: Path) -> None:
    done = shell(f"(sleep 1; {IN_SHELL} --help) | true", tmp_path)
    assert done.stderr == ""


@pytest.mark.parametrize("sent", [[signal.SIGHUP], [signal.SIGTERM], [signal.SIGINT] * 3])
def test_signals_end_a_command_once(run_copy: Path, workplace: Path, sent: list[signal.Signals]) -> None:
    running = start(f"certify {run_copy} --n 200000", workplace)
    log = run_copy / "certify.tsv"
    until = time.monotonic() + 60
    while not log.exists() and time.monotonic() < until:
        time.sleep(0.05)
    for number in sent:
        os.kill(running.pid, number)
        time.sleep(0.03)
    done = finish(running)
    assert done.code == 130
    assert "interrupted; what is finished is on disk" in done.err
    assert "Traceback" not in done.err
