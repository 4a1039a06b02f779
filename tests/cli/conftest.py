"""Running the command line as a user types it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from smoothctl.cli import run


@dataclass(frozen=True)
class Finished:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


Typed = Callable[[str], Finished]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    """Run ``smoothctl`` with the words of a line, in this process."""

    def type_line(line: str) -> Finished:
        capsys.readouterr()
        code = run(shlex.split(line))
        captured = capsys.readouterr()
        return Finished(code, captured.out, captured.err)

    return type_line


def _heed_interrupts() -> None:
    """A suite in the background of a shell ignores Ctrl-C, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def start(line: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """Start ``smoothctl`` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "smoothctl", *shlex.split(line)],
        cwd=cwd, env={**os.environ, "OMP_NUM_THREADS": "1", **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_heed_interrupts,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> Finished:
    """Wait for a process."""
    out, err = process.communicate(timeout=120)
    return Finished(process.returncode, out, err)
