"""Filling a log: each image is read once, and its label and name come with it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from smoothctl.cli import run
from tests.conftest import PluginMaker

COUNTING = """
import numpy as np, smoothctl

READ = []

class Images:
    class_names = tuple("0123456789")
    levels = 255

    def __len__(self):
        return 4

    def __getitem__(self, index):
        READ.append(index)
        if index == 2:
            raise OSError("broken")
        return np.full((8, 8), 10 * index, np.uint8), 9 - index

    def image_id(self, index):
        return f"number-{index}"

@smoothctl.hookimpl
def register_datasets():
    return [smoothctl.Dataset("counting", lambda split, data, download: Images(), shape=(1, 8, 8))]
"""


@pytest.mark.parametrize("more", [[], ["--skip-misclassified"]])
def test_an_image_is_read_once(more: list[str], trained: Path, tmp_path: Path, make_plugin: PluginMaker) -> None:
    import importlib

    make_plugin("counting", COUNTING)
    command = ["certify", str(trained), "--dataset", "counting", "--n", "50", "--alpha", "0.01", *more]
    assert run([*command, "--out", str(tmp_path / "log.tsv")]) == 1
    read = importlib.import_module("dist_counting_module").READ
    assert sorted(read) == [0, 1, 2, 3]
    with (tmp_path / "log.tsv").open() as handle:
        rows = {row["idx"]: row for row in csv.DictReader(handle, delimiter="\t")}
    assert [(rows[idx]["label"], rows[idx]["image"]) for idx in "013"] == [
        ("9", "number-0"),
        ("8", "number-1"),
        ("6", "number-3"),
    ]
    assert "broken" in rows["2"]["status"]
