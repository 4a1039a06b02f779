"""The tests that docs/hardening.md names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "hardening.md").read_text()


def named() -> list[tuple[str, str]]:
    """Files of tests, and the test in each that is named; a name without a file is of the file before it."""
    found: list[tuple[str, str]] = []
    for path, test in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", PAGE):
        if path or test:
            found.append((path or found[-1][0], test))
    return found


@pytest.mark.parametrize(("path", "test"), named())
def test_what_is_named_is_there(path: str, test: str) -> None:
    text = (ROOT / path).read_text()
    assert not test or f"def {test}(" in text


def test_names_are_found() -> None:
    assert len(named()) > 15
