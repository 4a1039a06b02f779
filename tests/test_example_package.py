"""The outside package in docs/examples, installed as a user would and used by name."""

from __future__ import annotations

import dataclasses
import importlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from smoothctl.records.log import read_log
from tests.cli.conftest import finish, start

EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "examples" / "smoothctl-example"
MOST_LINES = {"label_smoothing": 40, "mlp": 20, "stripes": 20, "logistic": 20, "two_chances": 25}


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

    assert "[smoothctl-example 1.0]" in typed("plugins")
    assert "smoothing = 0.1: weight that is spread over all classes" in typed("plugins label-smoothing")
    typed("train --method label-smoothing --dataset stripes --noise logistic -o samples=3 --out run")
    assert len((tmp_path / "run" / "loss.csv").read_text().splitlines()) == 5
    typed("certify run --n 200 --max 5")
    assert "certify --first: Fraction of n that is tried first." in typed("plugins two-chances")
    typed("certify run --n 200 --max 5 --first 0.5 --out twice.tsv")
    twice = read_log(tmp_path / "twice.tsv")
    assert twice.settings is not None
    assert (twice.settings["rule"], twice.settings["first"]) == ("two-chances", 0.5)
    assert {row.n for row in twice.rows} <= {100, 200}
    assert "ACR" in typed("report twice.tsv")
    log = read_log(tmp_path / "run" / "certify.tsv")
    assert log.settings is not None
    assert (log.settings["noise"], log.settings["norm"]) == ("logistic", "l1")
    assert all(row.correct and row.radius for row in log.rows)


def test_its_own_tests_pass(installed: Path) -> None:
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(EXAMPLE / "tests"),
        "--rootdir",
        str(EXAMPLE),
    ]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(tests, cwd=installed, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_an_outside_method_has_all_that_the_loop_offers(installed: Path, tmp_path: Path) -> None:
    """Its recipe, an interrupted run, a lower precision, and two processes: none of it is the method's business."""
    line = "train --method label-smoothing --dataset stripes --noise logistic"

    def typed(more: str, *launcher: str) -> str:
        done = subprocess.run(
            [sys.executable, *launcher, "-m", "smoothctl", *f"{line} {more}".split()],
            cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(installed)},
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        return done.stderr

    assert "recipe: this package" in typed("--out one")
    killed = start(f"{line} --out killed", tmp_path, PYTHONPATH=str(installed))
    while killed.poll() is None and not (tmp_path / "killed" / "epochs.jsonl").exists():
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    typed("--out killed")
    typed("--out two", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    typed("--precision bf16 --ema 0.9 --out low")
    one, resumed, two, low = (
        torch.load(tmp_path / run / "model.pt", weights_only=True)["state_dict"]
        for run in ("one", "killed", "two", "low")
    )
    for key in one:
        assert torch.equal(one[key], resumed[key])
        torch.testing.assert_close(one[key], two[key], rtol=1e-4, atol=1e-5)
        assert torch.isfinite(low[key]).all()


def test_the_outside_rule_keeps_its_guarantee(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smoothctl.testing import check_rule

    monkeypatch.syspath_prepend(str(installed))
    (rule,) = importlib.import_module("smoothctl_example.two_chances").register_rules()
    with pytest.raises(AssertionError, match=r"is wrong [12]\.\d+ times as often"):
        check_rule(
            dataclasses.replace(rule, plan=lambda case: rule.plan(dataclasses.replace(case, alpha=3 * case.alpha)))
        )


@pytest.mark.parametrize(("module", "most"), MOST_LINES.items())
def test_plugins_are_as_short_as_promised(module: str, most: int) -> None:
    lines = (EXAMPLE / "smoothctl_example" / f"{module}.py").read_text().splitlines()
    code = [line for line in lines if line.strip() and not line.startswith(('"""', "#"))]
    assert len(code) < most
