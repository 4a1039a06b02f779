"""Radii in other norms, as a user meets them: certified, planned, on record, in tables and on the page."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from smoothctl.records.log import read_log
from tests.cli.conftest import Typed


def settings_of(log: Path) -> dict:
    return json.loads(log.with_suffix(".json").read_text())["settings"]


@pytest.mark.parametrize("noise", ["laplace", "uniform"])
def test_a_model_is_trained_and_certified_in_l1(noise: str, typed: Typed, workplace: Path) -> None:
    assert typed(f"train --arch lenet --noise {noise} --sigma 0.25 --epochs 2 --out run").code == 0
    assert typed("certify run --n 200 --max 20").code == 0
    found = settings_of(Path("run/certify.tsv"))
    assert (found["noise"], found["norm"], found["arithmetic"]) == (noise, "l1", "exact, grid 1/240")
    done = typed("report run --out page --what-if alpha=0.01")
    assert done.code == 0
    assert "Certified accuracy (%) at L1 radius r" in done.out
    assert "L1" in Path("page/index.html").read_text()


def test_l2_radii_are_converted_to_linf_and_it_is_said(run_copy: Path, typed: Typed) -> None:
    plain = typed(f"certify {run_copy} --n 200 --max 20 --out {run_copy}/l2.tsv")
    done = typed(f"certify {run_copy} --n 200 --max 20 --norm linf --out {run_copy}/linf.tsv")
    assert (plain.code, done.code) == (0, 0)
    assert "radii in LINF are L2 radii divided by 8" in done.err
    assert settings_of(run_copy / "linf.tsv")["norm"] == "linf"
    for one, other in zip(read_log(run_copy / "l2.tsv").rows, read_log(run_copy / "linf.tsv").rows, strict=True):
        assert one.radius is not None
        assert other.radius == pytest.approx(one.radius / 8, abs=1e-6)
        assert (other.radius or 0) <= one.radius / 8 + 1e-12
    both = typed(f"report {run_copy}/l2.tsv {run_copy}/linf.tsv")
    assert both.code == 0
    assert "radii in LINF are L2 radii divided by 8" in both.out + both.err
    resumed = typed(f"certify {run_copy} --n 200 --max 20 --out {run_copy}/linf.tsv")
    assert resumed.code == 2
    assert "norm linf in file, l2 requested" in resumed.err


def test_a_norm_is_part_of_the_python_interface(run_copy: Path) -> None:
    import torch

    import smoothctl

    model = smoothctl.load_model(run_copy).classifier
    x = torch.full((1, 1, 8, 8), 0.5)
    (own,) = smoothctl.certify(model, x, sigma=0.25, n=200)
    (linf,) = smoothctl.certify(model, x, sigma=0.25, n=200, norm="linf")
    assert linf.radius == pytest.approx(own.radius / math.sqrt(64))
