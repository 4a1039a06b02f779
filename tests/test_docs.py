"""Documentation is held against the code."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from smoothctl.cli import make_app
from smoothctl.hooks import specs

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "Makefile", *sorted((ROOT / "docs").glob("**/*.md"))]


def commands() -> list[str]:
    """Every line of a page that a user would type, and every example of a help page."""
    lines = [line for page in PAGES for line in page.read_text().splitlines()]
    typed = [line.split("  #")[0].strip() for line in lines if re.match(r"(    |\t)smoothctl ", line)]
    for command in typer.main.get_command(make_app()).commands.values():  # type: ignore[attr-defined]
        typed += re.findall(r"`(smoothctl [^`]+)`", command.epilog or "")
    return sorted(set(typed))


@pytest.mark.parametrize("line", commands())
def test_documented_commands_parse(line: str) -> None:
    _, name, *arguments = shlex.split(line)
    command = typer.main.get_command(make_app()).commands[name]  # type: ignore[attr-defined]
    command.make_context(name, arguments)


def test_commands_are_found() -> None:
    assert len(commands()) > 15


@pytest.mark.parametrize("page", ["README.md", "docs/plugins.md"])
def test_python_in_documents_runs(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        if not block.startswith("def register_methods() ->"):
            exec(compile(block, page, "exec"), {})


def test_the_hooks_stand_in_the_documents_exactly() -> None:
    text = (ROOT / "docs" / "plugins.md").read_text()
    for name, function in vars(specs).items():
        if hasattr(function, "smoothctl_spec"):
            signature = str(inspect.signature(function)).replace("'", "")
            assert f"def {name}{signature}" in text


def test_nothing_that_is_committed_names_a_place_of_one_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/(home|root|work|tmp)/", page.read_text()), page


def test_the_command_line_page_is_current() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "import generate_cli; print(generate_cli.page(), end='')"],
        cwd=ROOT / "docs", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (ROOT / "docs" / "cli.md").read_text() == made.stdout, "run: python docs/generate_cli.py"
