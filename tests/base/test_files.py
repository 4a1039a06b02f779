"""Writing whole files or none."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from smoothctl import SmoothctlError
from smoothctl.base.files import replace_file


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """What a full disk does, for files of this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_model_for_which_there_is_no_room_leaves_the_last_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"the last one")
    with largest_file(2**21), pytest.raises(SmoothctlError, match=r"model\.pt cannot be written; is the disk full"):
        replace_file(path, lambda temporary: torch.save({"weights": torch.ones(2**20)}, temporary))
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.pt"]
    assert path.read_bytes() == b"the last one"


def test_a_text_for_which_there_is_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    with largest_file(2**20), pytest.raises(OSError, match="large"):
        replace_file(tmp_path / "x.json", lambda temporary: temporary.write_bytes(bytes(2**21)))
    assert not list(tmp_path.iterdir())
