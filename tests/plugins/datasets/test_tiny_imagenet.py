"""Fetching Tiny ImageNet: from a small file in the published layout, made here."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from smoothctl_plugins.datasets import tiny_imagenet

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.cli import run
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import open_dataset

ENTRY = registry().find("dataset", "tiny-imagenet").value


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file at an address of this machine, with two classes and a member that points out of the folder."""
    picture = io.BytesIO()
    Image.new("RGB", (64, 64)).save(picture, "JPEG")
    file = tmp_path / "web" / "tiny.zip"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w") as content:
        for name in ("n01", "n02"):
            content.writestr(f"tiny-imagenet-200/train/{name}/images/{name}_0.JPEG", picture.getvalue())
        content.writestr("tiny-imagenet-200/val/images/val_0.JPEG", picture.getvalue())
        content.writestr("tiny-imagenet-200/val/val_annotations.txt", "val_0.JPEG\tn02\t0\t0\t62\t62\n")
        content.writestr("../../outside.txt", "here?")
    monkeypatch.setattr(tiny_imagenet, "MD5", hashlib.md5(file.read_bytes()).hexdigest())
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.HTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=file.parent)) as server:
        monkeypatch.setattr(tiny_imagenet, "URL", f"http://127.0.0.1:{server.server_port}/{file.name}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield file
        server.shutdown()


def test_it_is_fetched_when_asked_and_unpacked_in_its_place_only(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    place = tmp_path / "data"
    with pytest.raises(UsageError, match="or fetch it with `download`"):
        open_dataset(ENTRY, "val", tmp_path)
    _, images = open_dataset(ENTRY, "val", place, download=True)
    assert images[0][1] == 1
    assert [entry.name for entry in place.iterdir()] == ["tiny-imagenet-200"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data", "web"]
    published.unlink()  # it is not fetched again
    _, images = open_dataset(ENTRY, "train", place, download=True)
    assert len(images) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("fault", ["cut short", "not there", "another layout"])
def test_a_failed_download_leaves_nothing(
    fault: str, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    if fault == "cut short":
        published.write_bytes(published.read_bytes()[:-100])
    elif fault == "not there":
        published.unlink()
    else:
        with zipfile.ZipFile(published, "w") as content:
            content.writestr("other/train/n01/x.JPEG", "")
        monkeypatch.setattr(tiny_imagenet, "MD5", hashlib.md5(published.read_bytes()).hexdigest())
    place = tmp_path / "data"
    command = ["train", "--dataset", "tiny-imagenet", "--data", str(place), "--download"]
    assert run([*command, "--out", str(tmp_path / "run")]) == 1
    words = "cannot be unpacked into" if fault == "another layout" else "cannot be fetched from"
    assert words in capsys.readouterr().err.strip().splitlines()[-1]
    assert list(place.iterdir()) == []
    with pytest.raises(SmoothctlError):
        open_dataset(ENTRY, "val", place)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("val_0.JPEG n02\n", "line 1 names no image"),
        ("val_0.JPEG\tn02\t0\n\nval_1.JPEG\tn99\t0\n", "line 3 names no image with one of the classes in train"),
        ("../../a.JPEG\tn02\n", "line 1 names no image"),
        ("val_0.JPEG\tn02\t\udc85\n", "can't decode byte 0x85"),
    ],
)
def test_damaged_annotations_are_one_line(text: str, words: str, tmp_path: Path) -> None:
    for name in ("n01", "n02"):
        (tmp_path / "train" / name).mkdir(parents=True)
        Image.new("RGB", (64, 64)).save(tmp_path / "train" / name / "0.JPEG")
    (tmp_path / "val").mkdir()
    (tmp_path / "val" / "val_annotations.txt").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match=words) as caught:
        open_dataset(ENTRY, "val", tmp_path)
    assert "\n" not in str(caught.value)
