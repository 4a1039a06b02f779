"""Writing whole files or none."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from smoothctl import SmoothctlError
from smoothctl.base.files import exclusive, replace_file


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


def test_a_lock_whose_file_was_taken_away_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process opens the lock file, the first ends and removes it, and only then the second locks it."""
    acquire = FileLock.acquire
    taken_away: list[FileLock] = []

    def late(lock: FileLock, timeout: float) -> object:
        held = acquire(lock, timeout=timeout)
        if not taken_away:
            Path(lock.lock_file).unlink()
            taken_away.append(lock)
        return held

    monkeypatch.setattr(FileLock, "acquire", late)
    path = tmp_path / "log.tsv"
    with exclusive(path):
        assert not taken_away[0].is_locked
        with pytest.raises(SmoothctlError, match=f"is being written by process {os.getpid()}"), exclusive(path):
            pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO])
def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "log.tsv"
    with pytest.raises(SmoothctlError, match=r"\.log\.tsv\.lock"), exclusive(path):
        pass
    assert not list(tmp_path.iterdir())


def test_the_file_of_a_lock_is_gone_before_the_lock_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a third process could lock a file that the second, which waited for it, is about to find gone."""
    there: list[bool] = []
    release = FileLock.release

    def watched(lock: FileLock, *words: bool) -> None:
        there.append(Path(lock.lock_file).exists())
        release(lock, *words)

    monkeypatch.setattr(FileLock, "release", watched)
    with exclusive(tmp_path / "log.tsv"):
        assert (tmp_path / ".log.tsv.lock").exists()
    assert there[0] is False
