"""Published datasets: what is missing, damaged or in another form is said, and how to fetch it by hand."""

from __future__ import annotations

import hashlib
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

from smoothctl.base.errors import UsageError
from smoothctl.cli import run
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import open_dataset
from smoothctl.images.published import DatasetMissing


@pytest.fixture
def small_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of three images in CIFAR-10's layout, whose checksums torchvision's table is given."""
    from torchvision.datasets import CIFAR10

    folder = tmp_path / "data" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)

    def write(name: str, content: object) -> list[str]:
        (folder / name).write_bytes(pickle.dumps(content))
        return [name, hashlib.md5((folder / name).read_bytes()).hexdigest()]

    def batch() -> dict[str, object]:
        return {"data": rng.integers(0, 256, (3, 3072), np.uint8), "labels": [3, 1, 9]}

    monkeypatch.setattr(CIFAR10, "train_list", [write(f"data_batch_{number}", batch()) for number in range(1, 3)])
    monkeypatch.setattr(CIFAR10, "test_list", [write("test_batch", batch())])
    name, checksum = write("batches.meta", {"label_names": list("abcdefghij")})
    monkeypatch.setattr(CIFAR10, "meta", {"filename": name, "key": "label_names", "md5": checksum})
    return tmp_path / "data"


def refusal(name: str, data: Path) -> str:
    with pytest.raises(DatasetMissing) as caught:
        open_dataset(registry().find("dataset", name).value, "test", data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_whole_files_are_read(small_cifar: Path) -> None:
    known, images = open_dataset(registry().find("dataset", "cifar10").value, "train", small_cifar)
    assert (len(images), known.shape) == (6, (3, 32, 32))
    assert [images[at][1] for at in range(3)] == [3, 1, 9]


def test_a_damaged_and_a_missing_batch_are_named(small_cifar: Path) -> None:
    batch = small_cifar / "cifar-10-batches-py" / "data_batch_2"
    batch.write_bytes(batch.read_bytes()[:-1])
    assert "cifar-10-batches-py/data_batch_2 is damaged or not whole" in refusal("cifar10", small_cifar)
    batch.unlink()
    assert "cifar-10-batches-py/data_batch_2 is missing" in refusal("cifar10", small_cifar)


def test_what_lies_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision.datasets import CIFAR100

    (tmp_path / "cifar10.npz").write_bytes(b"")
    assert f"for arrays say `data={tmp_path / 'cifar10.npz'}`" in refusal("cifar10", tmp_path)
    (tmp_path / "cifar-100-python.tar.gz").write_bytes(bytes(1_000_000))
    assert "but its 1,000,000 bytes are not what was published" in refusal("cifar100", tmp_path)
    packed = io.BytesIO()
    tarfile.open(fileobj=packed, mode="w:gz").close()
    (tmp_path / "cifar-100-python.tar.gz").write_bytes(packed.getvalue())
    monkeypatch.setattr(CIFAR100, "tgz_md5", hashlib.md5(packed.getvalue()).hexdigest())
    assert "unpack it: tar -xf" in refusal("cifar100", tmp_path)
    (tmp_path / "empty").mkdir()
    for name, file in (("svhn", "test_32x32.mat"), ("mnist", "MNIST/raw/train-images-idx3-ubyte")):
        said = refusal(name, tmp_path / "empty")
        assert file in said
        assert "the folder is empty" in said


def test_damaged_idx_files_are_named(tmp_path: Path) -> None:
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        for kind in ("images-idx3", "labels-idx1"):
            (raw / f"{part}-{kind}-ubyte").write_bytes(b"\x00\x00\x08\x03\x00\x00")
    assert "its files are damaged" in refusal("fashion-mnist", tmp_path)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("cifar10", "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"),
        ("cifar100", "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"),
        ("svhn", "http://ufldl.stanford.edu/housenumbers/"),
        ("mnist", "http"),
        ("fashion-mnist", "http"),
        ("tiny-imagenet", "http://cs231n.stanford.edu/tiny-imagenet-200.zip"),
    ],
)
def test_a_download_without_a_network_says_how_to_do_it_by_hand(
    name: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    command = ["train", "--dataset", name, "--data", str(tmp_path / "d"), "--download", "--out", str(tmp_path / "run")]
    assert run(command) == 1
    captured = capsys.readouterr()
    line = captured.err.strip().splitlines()[-1]
    assert line.startswith(f"smoothctl: {name} cannot be fetched from {address}")
    assert "Name or service not known" in line
    assert "leave --download out" in line
    assert captured.out == ""
    assert socket.getdefaulttimeout() is None


def test_the_folder_itself_may_be_named(small_cifar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smoothctl import root_of

    own = small_cifar / "cifar-10-batches-py"
    whole = open_dataset(registry().find("dataset", "cifar10").value, "train", small_cifar)[1]
    assert len(open_dataset(registry().find("dataset", "cifar10").value, "train", own)[1]) == len(whole)
    monkeypatch.chdir(own)
    assert len(open_dataset(registry().find("dataset", "cifar10").value, "train", Path())[1]) == len(whole)
    for place in ("a", "a/MNIST", "a/MNIST/raw"):
        assert root_of(tmp_path / place, "MNIST/raw") == tmp_path / "a"
    (tmp_path / "raw" / "MNIST" / "raw").mkdir(parents=True)
    assert root_of(tmp_path / "raw", "MNIST/raw") == tmp_path / "raw"


def test_digits_take_no_files(tmp_path: Path) -> None:
    """So that --data without --dataset is not ignored."""
    with pytest.raises(UsageError, match=r"nothing is read from .*name what lies there: `dataset=folder`"):
        open_dataset(registry().find("dataset", "digits").value, "train", tmp_path)
