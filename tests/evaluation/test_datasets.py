"""The functions of Python leave what the commands leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import smoothctl
from smoothctl import UsageError
from smoothctl.cli import run


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("", {}),
        ("--radii 0.1,0.2 --alpha 0.01", {"radii": (0.1, 0.2), "alpha": 0.01}),
        ("--budget fast", {"budget": "fast"}),
    ],
)
def test_certify_dataset_is_the_command(
    run_copy: Path, workplace: Path, line: str, settings: dict[str, object]
) -> None:
    assert run(f"certify {run_copy} --n 500 --every 100 --out typed.tsv {line}".split()) == 0
    log = smoothctl.certify_dataset(run_copy, n=500, every=100, out=workplace / "called.tsv", **settings)
    assert log is not None
    without_time = [{**vars(row), "seconds": None} for row in log.rows]
    assert without_time == [{**vars(row), "seconds": None} for row in smoothctl.read_log(workplace / "typed.tsv").rows]
    sidecars = [json.loads((workplace / f"{name}.json").read_text()) for name in ("typed", "called")]
    assert sidecars[0]["settings"] == sidecars[1]["settings"]


def test_predict_dataset_writes_beside_the_model(run_copy: Path) -> None:
    log = smoothctl.predict_dataset(str(run_copy), n=200, max=3)
    assert log is not None
    assert log.path == run_copy / "predict.tsv"
    assert len(log) == 3
    assert run(["predict", str(run_copy), "--n", "200", "--max", "3"]) == 0


def test_settings_are_checked(run_copy: Path) -> None:
    with pytest.raises(UsageError, match="two stopping rules"):
        smoothctl.certify_dataset(run_copy, radii=(0.1,), budget="fast")
    with pytest.raises(TypeError, match="nonsense"):
        smoothctl.certify_dataset(run_copy, nonsense=1)
