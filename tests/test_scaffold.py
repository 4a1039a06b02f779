"""``smoothctl plugins new``: a package whose own tests pass as generated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from smoothctl.hooks.registry import KINDS
from smoothctl.scaffold.package import KINDS as OFFERED
from tests.cli.conftest import Typed, typed

__all__ = ["typed"]


@pytest.mark.timeout(600)
def test_the_tests_of_a_new_package_pass_as_they_are(typed: Typed, workplace: Path) -> None:
    done = typed("plugins new my-idea " + " ".join(f"--{kind}" for kind in OFFERED))
    assert done.code == 0
    assert "my-idea/my_idea/noise.py" in done.out
    assert done.out.splitlines()[-1] == "next: pip install -e 'my-idea[test]' && pytest my-idea"
    site = workplace / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(site)]
    subprocess.run([*pip, "./my-idea"], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(
        tests, cwd=workplace / "my-idea", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{2 * len(OFFERED)} passed" in done.stdout
    listed = subprocess.run(
        [sys.executable, "-m", "smoothctl", "plugins"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert " ".join(listed.split()).count("[my-idea 0.1.0]") == len(OFFERED)


def test_every_kind_is_offered_and_a_method_by_itself(typed: Typed, workplace: Path) -> None:
    assert set(OFFERED) == set(KINDS)
    document = typed("plugins new other --json").json()
    assert "other/other/method.py" in document["files"]
    assert all((workplace / path).is_file() for path in document["files"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("plugins new", "smoothctl plugins new PACKAGE, such as my-noise"),
        ("plugins new 'my noise'", "my noise is no name of a package"),
        ("plugins new class", "class is no name of a package"),
        ("plugins new ../evil", "../evil is no name of a package"),
        ("plugins new taken", "taken is there already"),
        ("plugins macer other", "other belongs to: smoothctl plugins new PACKAGE"),
        ("plugins --noise", "--noise belongs to: smoothctl plugins new PACKAGE"),
    ],
)
def test_what_cannot_be_written_is_one_line(line: str, words: str, typed: Typed, workplace: Path) -> None:
    (workplace / "taken").mkdir()
    done = typed(line)
    assert done.code == 2
    assert words in done.err
    assert list(workplace.iterdir()) == [workplace / "taken"]


def test_the_list_fits_80_columns(typed: Typed) -> None:
    lines = typed("plugins").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "stopping rules: certify --rule NAME" in lines
