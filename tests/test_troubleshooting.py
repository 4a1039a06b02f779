"""What docs/troubleshooting.md quotes is what the code says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
QUOTED = re.findall(
    r"^\*\*`([^`]+)`\*\*| and \*\*`([^`]+)`\*\*", (ROOT / "docs" / "troubleshooting.md").read_text(), re.M
)


def texts() -> list[str]:
    """The texts of the code, with a brace for each value that is put in."""
    found = []
    for folder in ("smoothctl", "plugins"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
                    found.append("".join(map(str, parts)))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    return found


def as_typed(text: str) -> str:
    """A message with its settings as flags."""
    return re.sub(r"`(\w+)(?:=([^`]*))?`", lambda found: " ".join(filter(None, (f"--{found[1]}", found[2]))), text)


TEXTS = list(map(as_typed, texts()))


@pytest.mark.parametrize("message", sorted({first or second for first, second in QUOTED}))
def test_a_message_that_is_quoted_is_in_the_code(message: str) -> None:
    assert any(message in text for text in TEXTS)


def test_messages_are_found() -> None:
    assert len(QUOTED) > 15
