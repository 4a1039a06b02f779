"""The engine knows no plugin by its name, but for what is meant where nothing is named, and names no flag."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from smoothctl.hooks.registry import KINDS, registry

ENGINE = Path(__file__).parents[2] / "smoothctl"
DECLARED = ENGINE / "hooks" / "defaults.py"
MEANT_OTHERWISE = {
    "npz": "the ending of a file",
    "split": "a part of a dataset",
    "onnxruntime": "a package of Python",
    "radii": "a key of the report as JSON",
    "compile": "an option of training",
}
BY_THEIR_ROOM = ("table", "plot")
"""Tables and plots of reports are registered by the engine itself."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_no_string_of_the_engine_is_the_name_of_a_plugin() -> None:
    entries = [entry for kind in KINDS if kind not in BY_THEIR_ROOM for entry in registry().all(kind)]
    names = {name for entry in entries for name in entry.names} - set(MEANT_OTHERWISE)
    assert {"gaussian", "macer", "lenet", "cifar10", "cohen"} <= names
    found = [
        f"{path.relative_to(ENGINE)}:{line}: {text}"
        for path in sorted(ENGINE.rglob("*.py"))
        if path != DECLARED
        for line, text in texts(path)
        if text in names
    ]
    assert found == []


def said(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module that are neither docstrings nor the help of options."""
    tree = ast.parse(path.read_text())
    apart = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Option":
            apart |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.lineno, node.value


def test_flags_are_named_by_the_command_line_only() -> None:
    """And by what tests it.

    Whole commands apart, such as ``smoothctl transfer --teacher MODEL``, and the variables of style sheets.
    """
    found = [
        f"{path.relative_to(ENGINE)}:{line}: {text}"
        for path in sorted(ENGINE.rglob("*.py"))
        if path.relative_to(ENGINE).parts[0] not in ("cli", "testing")
        for line, text in said(path)
        if re.search(r"(?<![\w-])--[a-z]", re.sub(r"smoothctl [a-z]+ --.*|var\(--", "", text))
    ]
    assert found == []


def test_defaults_are_registered() -> None:
    from smoothctl.hooks import defaults

    for kind, name in [
        ("method", defaults.METHOD), ("method", defaults.TRANSFER_METHOD), ("dataset", defaults.DATASET),
        ("architecture", defaults.ARCHITECTURE), ("noise", defaults.NOISE), ("rule", defaults.RULE),
        ("backend", defaults.BACKEND),
    ]:  # fmt: skip
        assert registry().find(kind, name).name == name
