"""The command line as a user types it, for the tests of a plugin."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path


def run_command(line: str, folder: Path) -> str:
    """Run ``smoothctl`` with the words of a line in a folder, in this process; returns stdout.

    Raises AssertionError, with what it printed, unless it ends with 0.
    """
    from smoothctl.cli import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(shlex.split(line))
    assert code == 0, f"smoothctl {line} ended with {code}:\n{out.getvalue()}{err.getvalue()}"
    return out.getvalue()
