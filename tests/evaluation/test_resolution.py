"""How much images tell: against simulation, and as a dry run says it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from smoothctl.cli import run
from smoothctl.evaluation.resolution import resolution


@pytest.mark.parametrize("images", [100, 500, 10_000])
def test_two_logs_that_differ_by_so_much_are_told_apart_in_four_of_five_cases(images: int) -> None:
    d = resolution(images).difference
    draws = np.random.default_rng(0)
    a, b = (draws.binomial(images, p, 20_000) / images for p in ((1 + d) / 2, (1 - d) / 2))
    z = (2 * np.arcsin(np.sqrt(a)) - 2 * np.arcsin(np.sqrt(b))) / np.sqrt(2 / images)
    assert np.mean(np.abs(z) > stats.norm.isf(0.025)) == pytest.approx(0.8, abs=0.02)


def test_the_interval_of_known_sizes() -> None:
    assert resolution(10_000).interval == pytest.approx(0.0098, abs=0.0002)
    assert resolution(500).interval == pytest.approx(0.0447, abs=0.0005)
    assert resolution(500).images_for_a_point == 9604
    assert resolution(1).difference <= 1


def test_a_dry_run_says_what_the_images_tell(run_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certify", str(run_copy), "--n", "100", "--max", "300", "--dry-run"]) == 0
    assert (
        "they tell: certified accuracy within 5.8 points (95 %, at worst; 9,604 images: within 1)"
        in capsys.readouterr().out
    )
