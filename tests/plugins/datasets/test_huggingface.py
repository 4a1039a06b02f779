"""Datasets in Hugging Face's format, saved by the tests themselves."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from smoothctl.base.errors import UsageError
from smoothctl.cli import run
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import open_dataset, pixels
from smoothctl.models.checkpoint import load_model

datasets = pytest.importorskip("datasets", reason="datasets is not installed")
ENTRY = registry().find("dataset", "huggingface").value
NAMES = ["cat", "dog", "eel"]


def table(labels: list[int], mode: str = "RGB", **more: Any) -> Any:
    """Images of one colour each, 20 times the place, with their labels."""
    images = [Image.new(mode, (8, 8), "#" + f"{20 * place:02x}" * 3) for place in range(len(labels))]
    features = {"img": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)}
    features |= {column: feature for column, (feature, _) in more.items()}
    columns = {"img": images, "label": labels} | {column: values for column, (_, values) in more.items()}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


def test_a_saved_dataset_trains_and_certifies(tmp_path: Path) -> None:
    datasets.DatasetDict(train=table([0, 1, 2, 0]), validation=table([2, 1])).save_to_disk(tmp_path / "data")
    command = ["--dataset", "huggingface", "--data", str(tmp_path / "data")]
    train = ["train", *command, "--arch", "lenet", "--epochs", "1", "--lr", "0.001", "--batch-size", "4"]
    assert run([*train, "--workers", "1", "--out", str(tmp_path / "run")]) == 0
    assert load_model(tmp_path / "run").info.class_names == NAMES
    certify = ["certify", str(tmp_path / "run"), *command, "--n0", "2", "--n", "20", "--alpha", "0.01"]
    assert run([*certify, "--split", "validation"]) == 0
    rows = (tmp_path / "run" / "certify.tsv").read_text().splitlines()
    assert [row.split("\t")[1] for row in rows[1:]] == ["2", "1"]


def test_columns_are_found_by_their_type(tmp_path: Path) -> None:
    coarse = datasets.ClassLabel(names=["pet", "fish"])
    table([2, 0], "L", number=(datasets.Value("int64"), [5, 6]), kind=(coarse, [1, 0])).save_to_disk(tmp_path / "d")
    known, images = open_dataset(ENTRY, "train", tmp_path / "d")
    assert (known.class_names, known.shape) == (tuple(NAMES), (1, 8, 8))
    assert [images[index][1] for index in range(2)] == [2, 0]
    np.testing.assert_allclose(pixels(images, 1).numpy(), np.full((1, 8, 8), 20 / 255), rtol=1e-6)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: table([0, 1]).remove_columns("img"), "no column of type Image; it has label"),
        (lambda: table([0, -1]), "have no label; choose another with `split`"),
        (
            lambda: table([0, 1], kind=(datasets.ClassLabel(names=["a"]), [0, 0])).rename_column("label", "fine"),
            "has fine, kind of type ClassLabel; rename the one that is meant to 'label'",
        ),
        (lambda: datasets.DatasetDict(a=table([0]), b=table([1])), "has the splits a, b, not 'test'"),
    ],
)
def test_what_cannot_be_used_is_said(made: Any, words: str, tmp_path: Path) -> None:
    made().save_to_disk(tmp_path / "d")
    with pytest.raises(UsageError, match=words):
        open_dataset(ENTRY, "test", tmp_path / "d")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="was not written by save_to_disk"):
        open_dataset(ENTRY, "test", tmp_path)


def test_a_name_is_looked_up_in_the_cache_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def refuse(*address: object, **_: object) -> None:
        calls.append(address)
        raise OSError("there is no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"a name that is in the hub's cache.* `download`"):
        open_dataset(ENTRY, "test", Path("nobody/has-this"))
    assert not calls
    assert not datasets.config.HF_HUB_OFFLINE


@pytest.mark.parametrize("name", ["dataset_info.json", "state.json", "data-00000-of-00001.arrow"])
@pytest.mark.parametrize("content", [b"", b"[]", b"5", b'{"features": 3, "_data_files": "x"}', b"\xff\xff\xff\xff"])
def test_a_damaged_folder_is_one_line(name: str, content: bytes, tmp_path: Path) -> None:
    table([0, 1]).save_to_disk(tmp_path / "d")
    (tmp_path / "d" / name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        open_dataset(ENTRY, "all", tmp_path / "d")
    assert "\n" not in str(caught.value)
