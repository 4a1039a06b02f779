"""The short form of python -m tests.fuzz: each reader, some damaged files, other ones each day of the year."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from tests.fuzz.readers import READERS, Reader, hunt

INPUTS = 60


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_a_result_or_one_line(reader: Reader, place: Path) -> None:
    first = INPUTS * datetime.datetime.now(datetime.UTC).timetuple().tm_yday
    assert list(hunt(reader, place / reader.name, range(first, first + INPUTS))) == []
