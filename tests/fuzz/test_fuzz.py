"""The short form of python -m tests.fuzz: each reader, the first of its damaged files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.fuzz.hunting import Reader, hunt
from tests.fuzz.readers import READERS

INPUTS = 60


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_a_result_or_one_line(reader: Reader, place: Path) -> None:
    assert list(hunt(reader, place / reader.name, range(math.ceil(INPUTS * reader.share)))) == []
