"""Arrays in .npz files: a result or one line, and memory in proportion to the file."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from smoothctl.base.errors import UsageError
from smoothctl.cli import run
from smoothctl.images.arrays import read_npz


def header(shape: tuple[int, ...], dtype: str = "|u1") -> bytes:
    """A .npy file of this shape with nothing behind its header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def archive(path: Path, **parts: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as target:
        for name, content in parts.items():
            target.writestr(f"{name}.npy", content)
    return path


def saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_a_declared_shape_is_no_reason_to_take_memory(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", images=header((1_000_000, 1000, 1000)), labels=saved(np.arange(2)))
    tracemalloc.start()
    with pytest.raises(UsageError, match=r"images\.npy declares the shape \(1000000, 1000, 1000\)"):
        read_npz(path, "test")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path: Path) -> None:
    images = np.zeros((2000, 200, 200), np.uint8)
    np.savez_compressed(tmp_path / "a.npz", images=images, labels=np.zeros(2000, int))
    with pytest.raises(UsageError, match="would unpack to 80,"):
        read_npz(tmp_path / "a.npz", "test")
    np.savez(tmp_path / "b.npz", images=images, labels=np.zeros(2000, int))
    assert len(read_npz(tmp_path / "b.npz", "test")) == 2000


def test_a_label_of_a_million_millions(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", images=saved(np.zeros((2, 4, 4), np.uint8)), labels=saved(np.array([0, 10**12])))
    with pytest.raises(UsageError, match=r"labels has the label 1000000000000 at 1.*class_names"):
        read_npz(path, "test")


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 4, 4), "c8"), "must be uint8, or floats"),
        (np.zeros((2, 4, 4), [("a", "u1")]), "must be uint8, or floats"),
        (np.zeros((2, 4, 4), "M8[s]"), "must be uint8, or floats"),
        (np.zeros((2, 4, 4), "U3"), "must be uint8, or floats"),
        (np.zeros((2, 0, 4), "u1"), "do not go together"),
        (np.zeros((2, 4), "u1"), "do not go together"),
        (np.full((2, 4, 4), np.nan), "has values from nan"),
    ],
)
def test_arrays_that_are_no_images_are_named(
    images: np.ndarray, words: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = archive(tmp_path / "a.npz", images=saved(images), labels=saved(np.arange(2)))
    assert run(["train", "--dataset", "npz", "--data", str(path), "--arch", "lenet", "--out", str(tmp_path / "r")]) in (
        1,
        2,
    )
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert words in line


@pytest.mark.parametrize("dtype", [">f4", "<f8", "f2", ">f8", "f16"])
def test_floats_of_every_width_and_order_are_read(dtype: str, tmp_path: Path) -> None:
    images = np.linspace(0, 1, 32).reshape(2, 4, 4).astype(dtype)
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(2))
    read = read_npz(tmp_path / "a.npz", "test")
    np.testing.assert_allclose(read.images, images.astype(np.float32), atol=1e-7)
    assert read.images.dtype == np.float32


def test_damaged_archives_end_in_one_line(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for path in sorted((shared / "cases" / "arrays").iterdir()):
        out = tmp_path / path.stem
        command = [
            "train",
            "--dataset",
            "npz",
            "--data",
            str(path),
            "--arch",
            "lenet",
            "--epochs",
            "1",
            "--out",
            str(out),
        ]
        code = run([*command, "--dry-run"])
        error = capsys.readouterr().err.strip().splitlines()
        if code:
            assert code in (1, 2)
            assert len(error) == 1
            assert error[0].startswith("smoothctl: ")


@pytest.mark.parametrize("seed", range(40))
def test_an_archive_with_damaged_bytes_is_read_or_refused_in_one_line(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    rng = np.random.default_rng(seed)
    np.savez(tmp_path / "a.npz", images=rng.integers(0, 256, (4, 6, 6), np.uint8), labels=np.arange(4))
    data = np.frombuffer((tmp_path / "a.npz").read_bytes(), np.uint8).copy()
    data[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
    (tmp_path / "b.npz").write_bytes(data.tobytes()[: len(data) if seed % 4 else int(rng.integers(1, len(data)))])
    refusal = ""
    try:
        read_npz(tmp_path / "b.npz", "test")
    except UsageError as error:
        refusal = str(error)
    assert "\n" not in refusal


def test_channels_may_come_first_and_labels_from_one_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images, labels = np.arange(4 * 3 * 8 * 9, dtype=np.uint8).reshape(4, 3, 8, 9), np.array([1, 2, 3, 1])
    np.savez(tmp_path / "first.npz", images=images, labels=labels)
    read = read_npz(tmp_path / "first.npz", "train")
    assert np.array_equal(read.images, images.transpose(0, 2, 3, 1))
    said = capsys.readouterr().err
    assert "images (4, 3, 8, 9) are taken as [N,C,H,W]" in said
    assert "no label is below 1, so classes below it have no images" in said
    np.savez(tmp_path / "last.npz", images=images.transpose(0, 2, 3, 1), labels=labels - 1)
    assert np.array_equal(read_npz(tmp_path / "last.npz", "train").images, read.images)
    assert capsys.readouterr().err == ""
