"""The short form of python -m tests.soak."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.attempts import soak

KILLS = 5


@pytest.mark.timeout(600)
def test_what_is_cut_short_ends_as_if_it_had_not_been(trained: Path, tmp_path: Path) -> None:
    assert soak(tmp_path, trained, KILLS, seed=1).total() == KILLS
