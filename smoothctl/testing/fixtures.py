"""Fixtures for pytest, which finds them by itself where smoothctl is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from torch import nn

    from smoothctl.hooks.methods import Batch
    from smoothctl.reporting.assemble import Report


@pytest.fixture
def tiny_batch() -> Batch:
    """32 images [32,1,8,8] of four classes, with seeded noise."""
    from smoothctl.testing import methods

    return methods.tiny_batch()


@pytest.fixture
def tiny_network() -> nn.Module:
    """Two layers, from pixels [B,1,8,8] to logits [B,4]."""
    from smoothctl.testing import methods

    return methods.tiny_network()


@pytest.fixture
def tiny_report() -> Report:
    """Two small logs over the same images, put together."""
    from smoothctl.testing import reports

    return reports.tiny_report()


@pytest.fixture
def smoothctl_run(tmp_path: Path) -> Callable[[str], Path]:
    """Train by these flags on a few of the embedded digits, certify three images and report; gives the run directory.

    ``smoothctl_run("--method my-method")`` takes seconds.
    """
    from smoothctl.testing import run_command

    def made(flags: str = "") -> Path:
        run_command(f"train --epochs 1 --limit 100 --out run {flags}", tmp_path)
        run_command("certify run --n 100 --max 3", tmp_path)
        assert "ACR" in run_command("report run", tmp_path)
        return tmp_path / "run"

    return made
