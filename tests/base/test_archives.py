"""Archives that torch writes are looked at before anything is unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch

from smoothctl.base.archives import check_archive
from smoothctl.base.errors import SmoothctlError
from smoothctl.records.run_directory import RunDirectory


def bomb(path: Path) -> Path:
    """A megabyte that would unpack to many."""
    torch.save({"network": torch.zeros(30_000_000)}, path)
    with zipfile.ZipFile(path) as stored:
        entries = {name: stored.read(name) for name in stored.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in entries.items():
            packed.writestr(name, content)
    return path


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path: Path) -> None:
    file = bomb(tmp_path / "state.pt")
    assert file.stat().st_size < 1_000_000
    with pytest.raises(SmoothctlError, match="would unpack to 120,"):
        check_archive(file)
    with pytest.raises(SmoothctlError, match="would unpack to 120,"):
        RunDirectory(tmp_path).load_state()


def test_what_torch_writes_and_what_is_no_archive_passes(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1000), "b": "x" * 100_000}, tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes(b"no archive")
    check_archive(tmp_path / "a.pt")
    check_archive(tmp_path / "b.pt")
