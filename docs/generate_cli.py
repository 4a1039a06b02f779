"""Writes docs/cli.md from the command line itself: ``python docs/generate_cli.py``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import typer

from smoothctl.cli import EPILOG, make_app

PAGE = Path(__file__).with_name("cli.md")


def page() -> str:
    """The whole page."""
    group: Any = typer.main.get_command(make_app())
    parts = ["# Command line", "Made by `python docs/generate_cli.py`; a test holds it against the code.", EPILOG]
    parts += [section(name, command) for name, command in group.commands.items()]
    return "\n\n".join(parts) + "\n"


def section(name: str, command: Any) -> str:
    """One command: what it does, examples, arguments and options."""
    rows = [row(parameter) for parameter in command.params if parameter.name != "help"]
    table = "\n".join(["| option | meaning |", "|---|---|", *rows])
    return f"## smoothctl {name}\n\n{inspect.cleandoc(command.help)}\n\n{command.epilog}\n\n{table}"


def row(parameter: Any) -> str:
    """One argument or option, with its default if it has one that says something."""
    names = ", ".join(f"`{text}`" for text in (*parameter.opts, *parameter.secondary_opts) if text.startswith("-"))
    names = names or f"`{parameter.metavar}`"
    said = (parameter.help or "").replace("|", "\\|")
    default = parameter.default
    told = default not in (None, False, "") and not callable(default) and "[default:" not in said
    return f"| {names} | {said}{f' [default: {default}]' if told else ''} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
