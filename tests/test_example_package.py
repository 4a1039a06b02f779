"""The outside package in docs/examples, installed as a user would and used by name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smoothctl.records import read_log
from tests.cli.conftest import finish, start

EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "examples" / "smoothctl-example"
MOST_LINES = {"label_smoothing": 40, "mlp": 20, "stripes": 20, "laplace": 20}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package and its metadata."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "package")
    subprocess.run([*pip, "--target", str(target), str(source)], check=True)
    return target


def test_example_package_trains_certifies_and_tracks(installed: Path, tmp_path: Path) -> None:
    def typed(line: str) -> str:
        done = finish(start(line, tmp_path, PYTHONPATH=str(installed)))
        assert done.code == 0, done.err
        return done.out

    assert "example.laplace (smoothctl-example 1.0)" in typed("plugins")
    assert "smoothing = 0.1: weight that is spread over all classes" in typed("plugins label-smoothing")
    typed("train --method label-smoothing --dataset stripes --noise laplace -o copies=3 --out run")
    assert len((tmp_path / "run" / "loss.csv").read_text().splitlines()) == 5
    typed("certify run --n 200 --max 5")
    log = read_log(tmp_path / "run" / "certify.tsv")
    assert log.settings is not None
    assert (log.settings["noise"], log.settings["norm"]) == ("laplace", "l1")
    assert all(row.correct and row.radius for row in log.rows)


@pytest.mark.parametrize(("module", "most"), MOST_LINES.items())
def test_plugins_are_as_short_as_promised(module: str, most: int) -> None:
    lines = (EXAMPLE / "smoothctl_example" / f"{module}.py").read_text().splitlines()
    code = [line for line in lines if line.strip() and not line.startswith(('"""', "#"))]
    assert len(code) < most
