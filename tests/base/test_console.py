"""Notes and warnings go Python's ways, and to stderr where a command speaks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from smoothctl.base import console

LIBRARY = """
import logging, warnings
from smoothctl.base import console
logging.basicConfig(format="%(name)s: %(message)s", level=logging.INFO)
console.note("a note")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    console.warn("look here")
print([(str(each.message), each.category.__name__) for each in caught])
with console.progress("work", 2) as advance:
    advance(1)
"""


def test_a_library_uses_logging_and_warnings() -> None:
    done = subprocess.run([sys.executable, "-c", LIBRARY], capture_output=True, text=True, check=True)
    assert done.stdout == "[('look here', 'SmoothctlWarning')]\n"
    assert done.stderr == "smoothctl: a note\n"


def test_a_command_prints_both_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    with console.speaking(), console.speaking():
        for _ in range(2):
            console.note("a note")
            console.warn("look here")
    assert capsys.readouterr().err == "a note\nwarning: look here\n" * 2


def test_settings_are_named_as_who_speaks_calls_them(capsys: pytest.CaptureFixture[str]) -> None:
    with console.wording(str.upper), console.wording(lambda text: text.replace("b", "c")):
        console.note("a `b`")
    console.note("a `b`")
    assert capsys.readouterr().err == "A `C`\na `b`\n"
