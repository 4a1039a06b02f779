"""Datasets: which class is which, what a broken or missing file does, and what happens to pixels."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.cli import run
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.registry import registry
from smoothctl.images.arrays import read_npz
from smoothctl.images.datasets import open_dataset, pixels
from smoothctl.images.files import ImageFiles, class_folders, sort_class_names
from smoothctl.images.resizing import Fit, transform_of
from smoothctl.models.checkpoint import load_model
from tests.conftest import PluginMaker


def dataset(name: str) -> Dataset:
    found: Dataset = registry().find("dataset", name).value
    return found


def picture(path: Path, value: int = 100, size: tuple[int, int] = (8, 8), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(value)
    shape = (size[1], size[0]) if mode == "L" else (size[1], size[0], 3)
    Image.fromarray(rng.integers(0, 256, shape, np.uint8)).save(path)
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Twelve class folders 0..11 with an 8x8 image each."""
    for number in range(12):
        picture(tmp_path / "tree" / str(number) / "a.png", number)
    return tmp_path / "tree"


def trained_on(tree: Path, out: Path) -> Path:
    command = ["train", "--dataset", "folder", "--data", str(tree), "--arch", "lenet", "--epochs", "1"]
    assert run([*command, "--lr", "0.001", "--sigma", "0.25", "--out", str(out)]) == 0
    return out


def certify(model: Path, out: Path, *more: str) -> tuple[int, list[dict[str, str]]]:
    code = run(["certify", str(model), "--n0", "2", "--n", "20", "--alpha", "0.01", "--out", str(out), *more])
    with out.open() as handle:
        return code, list(csv.DictReader(handle, delimiter="\t"))


# Class names


def test_numeric_folder_names_sort_as_numbers(tree: Path) -> None:
    images = class_folders(tree)
    assert images.class_names == tuple(str(number) for number in range(12))
    assert [images.image_id(index) for index in (2, 10)] == ["2/a.png", "10/a.png"]
    assert sort_class_names(["10", "9", "cat"]) == ["10", "9", "cat"]
    assert sort_class_names(["b", "a10", "a9"]) == ["a10", "a9", "b"]


def test_the_class_order_is_printed_kept_and_checked(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = trained_on(tree, tmp_path / "run")
    assert load_model(out).info.class_names == [str(number) for number in range(12)]
    assert run(["certify", str(out), "--data", str(tree), "--n", "100", "--dry-run"]) == 0
    assert "2=2, 3=3" in capsys.readouterr().out
    (tree / "5").rename(tree / "20")
    assert run(["certify", str(out), "--data", str(tree)]) == 2
    assert "dataset folder has 12, of which '20' is none of the model's" in capsys.readouterr().err
    (tree / "20" / "a.png").unlink()
    code, rows = certify(out, tmp_path / "log.tsv", "--data", str(tree))
    assert code == 0
    assert [(row["image"], row["label"]) for row in rows[4:7]] == [("4/a.png", "4"), ("6/a.png", "6"), ("7/a.png", "7")]
    said = capsys.readouterr().err
    assert "folders without an image: 20" in said
    assert "folder has no image of 5" in said


def test_a_tree_with_splits(tmp_path: Path) -> None:
    for split in ("train", "val"):
        for name in ("cat", "dog"):
            picture(tmp_path / split / name / "deep" / f"{split}.JPEG")
    (tmp_path / "val" / "cat" / ".hidden.png").write_bytes(b"")
    (tmp_path / "val" / "empty").mkdir()
    known, images = open_dataset(dataset("folder"), "test", tmp_path)
    assert known.class_names == ("cat", "dog")
    assert images.image_id(1) == "dog/deep/val.JPEG"  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(images)).image_id(0) == "cat/deep/val.JPEG"
    with pytest.raises(UsageError, match="`data"):
        open_dataset(dataset("folder"), "test", None)
    with pytest.raises(UsageError, match=r"expected a folder of images for each class; the folder is empty.*fetched"):
        open_dataset(dataset("folder"), "test", tmp_path / "val" / "empty")


def test_classes_are_matched_by_name_between_splits(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The test split lacks the first class, has an empty one, and its labels are still those of training."""
    for name in ("ant", "bee", "cat"):
        picture(tmp_path / "train" / name / "a.png")
    (tmp_path / "train" / "aardvark").mkdir()
    for name in ("bee", "cat"):
        picture(tmp_path / "test" / name / "b.png")
    known, images = open_dataset(dataset("folder"), "test", tmp_path)
    assert known.class_names == ("ant", "bee", "cat")
    assert [images[index][1] for index in range(2)] == [1, 2]
    assert "no image of 1 classes: ant" in capsys.readouterr().err
    known, _ = open_dataset(dataset("folder"), "train", tmp_path)
    assert known.class_names == ("ant", "bee", "cat")
    assert "folders without an image: aardvark" in capsys.readouterr().err
    picture(tmp_path / "test" / "dog" / "b.png")
    with pytest.raises(UsageError, match=r"test has the class 'dog', which is none of the 3 classes.*ant, bee, cat"):
        open_dataset(dataset("folder"), "test", tmp_path)


def test_a_test_split_without_a_class_is_certified_with_the_right_labels(tmp_path: Path) -> None:
    for number, name in enumerate(("ant", "bee", "cat")):
        for split in ("train", "test"):
            picture(tmp_path / "tree" / split / name / "a.png", number)
    out = trained_on(tmp_path / "tree", tmp_path / "run")
    (tmp_path / "tree" / "test" / "ant" / "a.png").unlink()
    for place in ("tree", "tree/test"):  # with the training images there, and without
        code, rows = certify(out, tmp_path / f"{place[-4:]}.tsv", "--data", str(tmp_path / place))
        assert code == 0
        assert [(row["image"], row["label"]) for row in rows] == [("bee/a.png", "1"), ("cat/a.png", "2")]


def test_whatever_pillow_opens_is_an_image_whatever_it_is_called(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = tmp_path / "tree" / "a"
    made = picture(folder / "a.png")
    kinds = {
        "b.jfif": "JPEG",
        "c.JPG": "JPEG",
        "d.avif": "AVIF",
        "e.webp": "WEBP",
        "f": "PNG",
        "g.x": "GIF",
        "h.TIF": "TIFF",
    }
    for name, kind in kinds.items():
        with Image.open(made) as image:
            image.save(folder / name, kind)
    (folder / "notes.txt").write_text("no image")
    (folder / "README").write_text("nor this")
    (folder / "page.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    images = class_folders(tmp_path / "tree")
    assert {Path(path).name for path in images.paths} == {"a.png", *kinds}
    assert all(images[index][0].size == (8, 8) for index in range(len(images)))
    said = capsys.readouterr().err
    assert "3 files that are no images are skipped" in said
    assert "1 .txt" in said
    assert "1 without ending" in said


def test_a_plain_tree_is_split_by_a_seed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for name, count in (("cat", 10), ("dog", 12), ("rare", 1)):
        for number in range(count):
            picture(tmp_path / name / f"{number}.png", number)
    opened = {split: open_dataset(dataset("folder"), split, tmp_path)[1] for split in ("train", "test", "all")}
    paths = {split: set(images.paths) for split, images in opened.items()}  # type: ignore[attr-defined]
    assert not paths["train"] & paths["test"]
    assert paths["train"] | paths["test"] == paths["all"]
    assert len(paths["all"]) == 23
    count = [sum(path.startswith(name) for path in paths["test"]) for name in ("cat", "dog", "rare")]
    assert count == [2, 2, 0]
    assert opened["test"].subset == "one in 5 of each class is for the test, by seed 0 and path"  # type: ignore[attr-defined]
    assert "by seed 0" in capsys.readouterr().err
    again = open_dataset(dataset("folder"), "test", tmp_path)[1]
    assert set(again.paths) == paths["test"]  # type: ignore[attr-defined]


def test_how_a_plain_tree_was_split_is_on_record(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for number in range(5):
            picture(tmp_path / "data" / name / f"{number}.png", number)
    out = trained_on(tmp_path / "data", tmp_path / "run")
    certify(out, tmp_path / "log.tsv", "--data", str(tmp_path / "data"))
    about = json.loads((out / "settings.json").read_text())["about"]
    assert about["images"] == 8
    assert about["subset"] == "one in 5 of each class is for the test, by seed 0 and path"
    assert json.loads((tmp_path / "log.json").read_text())["about"]["subset"] == about["subset"]


def test_images_of_several_sizes_ask_for_one(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for name, size in (("cat", (12, 8)), ("dog", (8, 8))):
            picture(tmp_path / split / name / "a.png", size=size)
    with pytest.raises(UsageError, match=r"several sizes \(8x8, 8x12\).*`size`"):
        open_dataset(dataset("folder"), "train", tmp_path)
    known, images = open_dataset(dataset("folder"), "train", tmp_path, size=6)
    assert known.shape == (3, 6, 6)
    assert tuple(pixels(images, 0).shape) == (3, 6, 6)


# Broken and missing files


def test_one_broken_image_is_one_failed_record(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = trained_on(tree, tmp_path / "run")
    broken = tree / "3" / "a.png"
    broken.write_bytes(broken.read_bytes()[:100])
    code, rows = certify(out, tmp_path / "log.tsv", "--data", str(tree))
    assert code == 1
    assert len(rows) == 12
    assert [row["idx"] for row in rows if row["status"] != "ok"] == ["3"]
    assert "3/a.png cannot be read" in capsys.readouterr().err
    code, _ = certify(out, tmp_path / "other.tsv", "--data", str(tree), "--start", "4")
    assert code == 0


def test_training_names_the_broken_image(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tree / "3" / "a.png").write_bytes(b"no image")
    command = ["train", "--dataset", "folder", "--data", str(tree), "--arch", "lenet", "--epochs", "1"]
    for workers in ("0", "1"):
        assert run([*command, "--workers", workers, "--out", str(tmp_path / f"run{workers}")]) == 1
        line = capsys.readouterr().err.strip().splitlines()[-1]
        assert "3/a.png cannot be read" in line
        assert "of the train split" in line
        assert "Traceback" not in line


def test_a_broken_test_image_is_named_with_its_split_and_the_epoch_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for split in ("train", "test"):
        for number, name in enumerate(("cat", "dog")):
            picture(tmp_path / "tree" / split / name / "a.png", number)
    (tmp_path / "tree" / "test" / "dog" / "a.png").write_bytes(b"no image")
    command = ["train", "--dataset", "folder", "--data", str(tmp_path / "tree"), "--arch", "lenet", "--epochs", "1"]
    assert run([*command, "--lr", "0.001", "--out", str(tmp_path / "run")]) == 1
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "image 1 of the test split cannot be read" in line
    assert "test/dog/a.png" in line
    assert (tmp_path / "run" / "state.pt").exists()


@pytest.mark.parametrize(("name", "file"), [("cifar10", "cifar-10-batches-py"), ("mnist", "MNIST/raw")])
def test_a_missing_dataset_says_where_it_looked_and_which_flag_fetches_it(
    name: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert run(["train", "--dataset", name, "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert str(tmp_path) in error
    assert file in error
    assert "--download" in error
    assert list(tmp_path.iterdir()) == []


def test_a_half_downloaded_dataset_is_not_opened(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        for kind in ("images-idx3", "labels-idx1"):
            (raw / f"{part}-{kind}-ubyte").write_bytes(b"\x00\x00\x08\x03\x00\x00")
    assert run(["train", "--dataset", "mnist", "--data", str(tmp_path)]) == 2
    assert "mnist is not in" in capsys.readouterr().err
    assert run(["train", "--dataset", "mnist", "--data", str(tmp_path / "nowhere")]) == 2
    assert "there is nothing at" in capsys.readouterr().err


# ImageNet


def test_a_flat_val_needs_a_mapping_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    picture(tmp_path / "val" / "ILSVRC2012_val_00000001.JPEG", size=(300, 260))
    assert run(["train", "--dataset", "imagenet", "--data", str(tmp_path)]) == 2
    with pytest.raises(UsageError, match="1 images without labels") as caught:
        open_dataset(dataset("imagenet"), "val", tmp_path)
    assert len(str(caught.value).splitlines()) == 2
    assert "val.txt" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("val.txt", "ILSVRC2012_val_00000001.JPEG 65\nILSVRC2012_val_00000002.JPEG 970\n"),
        (
            "LOC_val_solution.csv",
            "ImageId,PredictionString\nILSVRC2012_val_00000001,n01751748 111 108 441 193\n"
            "ILSVRC2012_val_00000002,n09193705 0 0 9 9\n",
        ),
        (
            "val_labels.json",
            '{"ILSVRC2012_val_00000001.JPEG": "n01751748", "ILSVRC2012_val_00000002.JPEG": 970}',
        ),
    ],
)
def test_a_flat_val_with_a_mapping(name: str, text: str, tmp_path: Path) -> None:
    """Image 1 of the validation set is a sea snake (65), image 2 an alp (970)."""
    for number in (1, 2):
        picture(tmp_path / "val" / f"ILSVRC2012_val_0000000{number}.JPEG", size=(300, 260))
    (tmp_path / name).write_text(text)
    known, images = open_dataset(dataset("imagenet"), "val", tmp_path)
    assert [images[index][1] for index in range(2)] == [65, 970]
    assert (len(known.class_names), known.class_names[0]) == (1000, "n01440764")
    assert tuple(pixels(images, 0).shape) == (3, 224, 224)
    assert "shorter side to 256, centre crop 224x224" in transform_of(images)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{one} 65\n{two} 970\n{one} 3\n", r"names {one} twice, line 1 and line 3"),
        ("{one} 65\n\n{two} 970\nILSVRC2012_val_00000009.JPEG 3\n", r"00000009.JPEG \(line 4\), which is not among"),
        ("{one} 65\n{two}\n", r"line 2 has no label"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused_with_its_lines(text: str, words: str, tmp_path: Path) -> None:
    one, two = (f"ILSVRC2012_val_0000000{number}.JPEG" for number in (1, 2))
    for name in (one, two):
        picture(tmp_path / "val" / name, size=(30, 26))
    (tmp_path / "val.txt").write_text(text.format(one=one, two=two))
    with pytest.raises(UsageError, match=words.format(one=one)):
        open_dataset(dataset("imagenet"), "val", tmp_path)
    (tmp_path / "val.txt").unlink()
    (tmp_path / "val_labels.json").write_text(f'{{"{one}": 1, "{one}": 2, "{two}": 3}}')
    with pytest.raises(UsageError, match="twice, entry 1 and entry 2"):
        open_dataset(dataset("imagenet"), "val", tmp_path)


def test_the_devkits_numbers_mean_what_its_table_says(tmp_path: Path) -> None:
    """They are in an order of their own; ids above 1000 are inner nodes of WordNet."""
    from scipy.io import savemat

    for number in (1, 3):
        picture(tmp_path / "val" / f"ILSVRC2012_val_0000000{number}.JPEG", size=(300, 260))
    devkit = tmp_path / "ILSVRC2012_devkit_t12" / "data"
    devkit.mkdir(parents=True)
    (devkit / "ILSVRC2012_validation_ground_truth.txt").write_text("490\n7\n1\n")
    with pytest.raises(UsageError, match=r"with .*meta\.mat, which says what its numbers mean"):
        open_dataset(dataset("imagenet"), "val", tmp_path)
    rows = [(1, "n09193705"), (490, "n01751748"), (7, "n01440764"), (1001, "n00001740")]
    synsets = np.array(rows, dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O")]).reshape(-1, 1)
    savemat(devkit / "meta.mat", {"synsets": synsets})
    _, images = open_dataset(dataset("imagenet"), "val", tmp_path)
    assert [images[index][1] for index in range(2)] == [65, 970]
    whole = (devkit / "meta.mat").read_bytes()
    for damaged in (b"", b"junk", whole[:-40], whole[:200] + b"\xff" * 8 + whole[208:]):
        (devkit / "meta.mat").write_bytes(damaged)
        with pytest.raises(UsageError, match=r"with .*meta\.mat, which says what its numbers mean") as caught:
            open_dataset(dataset("imagenet"), "val", tmp_path)
        assert "\n" not in str(caught.value)


def test_a_table_on_which_its_reader_crashes_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smoothctl_plugins.datasets import imagenet

    picture(tmp_path / "val" / "ILSVRC2012_val_00000001.JPEG", size=(300, 260))
    (tmp_path / "ILSVRC2012_validation_ground_truth.txt").write_text("1\n")
    (tmp_path / "meta.mat").write_bytes(b"as it is")
    monkeypatch.setattr(imagenet, "READ_TABLE", "import os; os.kill(os.getpid(), 11)")
    with pytest.raises(UsageError, match=r"the reader of \.mat files ended -11"):
        open_dataset(dataset("imagenet"), "val", tmp_path)


def test_class_folders_of_imagenet_keep_their_numbers(tmp_path: Path) -> None:
    for folder in ("n09193705", "n01440764"):
        picture(tmp_path / "ILSVRC/Data/CLS-LOC/val" / folder / "x.JPEG")
    _, images = open_dataset(dataset("imagenet"), "val", tmp_path)
    assert [images[index][1] for index in range(2)] == [0, 970]
    picture(tmp_path / "val" / "cat" / "x.JPEG")
    with pytest.raises(UsageError, match="cat is no WordNet id"):
        open_dataset(dataset("imagenet"), "val", tmp_path)


def test_tiny_imagenet_as_it_is_unpacked(tmp_path: Path) -> None:
    root = tmp_path / "tiny-imagenet-200"
    for name in ("n02", "n01"):
        picture(root / "train" / name / "images" / f"{name}_0.JPEG", size=(64, 64))
    picture(root / "val" / "images" / "val_0.JPEG", size=(64, 64), mode="L")
    (root / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn02\t0\t0\t62\t62\n")
    known, images = open_dataset(dataset("tiny-imagenet"), "train", tmp_path)
    assert (known.class_names, len(images)) == (("n01", "n02"), 2)
    _, images = open_dataset(dataset("tiny-imagenet"), "val", tmp_path)
    assert images[0][1] == 1
    assert tuple(pixels(images, 0).shape) == (3, 64, 64)


# Arrays


def test_arrays_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {f"{s}_images": rng.integers(0, 256, (6, 8, 8), np.uint8) for s in ("train", "test")}
    np.savez(tmp_path / "a.npz", **arrays, train_labels=np.arange(6), test_labels=np.arange(6) % 2)
    known, _ = open_dataset(dataset("npz"), "test", tmp_path / "a.npz")
    assert (known.shape, known.class_names) == ((1, 8, 8), tuple("012345"))
    command = ["train", "--dataset", "npz", "--data", str(tmp_path / "a.npz"), "--arch", "lenet", "--epochs", "1"]
    assert run([*command, "--lr", "0.001", "--out", str(tmp_path / "run")]) == 0
    code, rows = certify(tmp_path / "run", tmp_path / "log.tsv", "--data", str(tmp_path / "a.npz"))
    assert (code, len(rows)) == (0, 6)


def test_arrays_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    for arrays, words in (
        ({"x": np.zeros(3)}, "has no test_images/test_labels"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": np.zeros(3)}, "do not go together"),
        ({"images": np.array([None]), "labels": np.zeros(1)}, "not an .npz file of plain arrays"),
    ):
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(UsageError, match=words):
            read_npz(tmp_path / "a.npz", "test")


# Pixels


@pytest.mark.parametrize("size", [(300, 260), (256, 256), (500, 130), (57, 400)])
def test_resizing_is_torchvisions(size: tuple[int, int], tmp_path: Path) -> None:
    from torchvision.transforms import v2

    image = Image.open(picture(tmp_path / "a.png", size=size))
    theirs = v2.Compose([v2.Resize(256), v2.CenterCrop(224)])(image)
    np.testing.assert_array_equal(np.array(Fit((3, 224, 224), 256)(image)), np.array(theirs))


def test_the_transformation_is_on_record_and_images_come_to_the_models_shape(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = trained_on(tree, tmp_path / "run")
    big = tmp_path / "big"
    for number in range(12):
        picture(big / str(number) / "a.png", number, size=(20, 12))
    code, _ = certify(out, tmp_path / "log.tsv", "--data", str(big))
    assert code == 0
    assert "brought to RGB, bilinear, to cover 8x8" in capsys.readouterr().err
    record = json.loads((tmp_path / "log.json").read_text())
    assert "RGB, bilinear, to cover 8x8" in json.dumps(record)
    assert load_model(out).info.input_shape == (3, 8, 8)


def test_a_size_can_be_asked_for(tree: Path, tmp_path: Path) -> None:
    command = ["train", "--dataset", "folder", "--data", str(tree), "--arch", "lenet", "--epochs", "1", "--size", "16"]
    assert run([*command, "--lr", "0.001", "--out", str(tmp_path / "run")]) == 0
    assert load_model(tmp_path / "run").info.input_shape == (3, 16, 16)


def test_files_are_turned_upright_and_brought_to_channels(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by a quarter
    Image.new("RGB", (6, 4), "red").save(tmp_path / "a.jpg", exif=exif)
    Image.new("LA", (6, 4)).save(tmp_path / "b.png")
    Image.new("I;16", (6, 4)).save(tmp_path / "c.png")
    images = ImageFiles(tmp_path, ("a.jpg", "b.png", "c.png"), (0, 0, 0), ("x",))
    assert images[0][0].size == (4, 6)
    assert images[1][0].mode == "RGB"
    assert set(images[1][0].tobytes()) == {255}  # what is transparent is on white
    with pytest.raises(OSError, match=r"c\.png cannot be read .*8 bits"):
        images[2]
    assert Fit((1, 4, 4))(images[0][0]).mode == "L"


WIDE = """
import torch, smoothctl

class Images:
    class_names = ("a", "b")
    def __len__(self): return 4
    def __getitem__(self, index): return torch.full((1, 8, 8), 255.0 * (index + 1) / 4), index % 2

@smoothctl.hookimpl
def register_datasets():
    return [smoothctl.Dataset("wide", lambda split, data, download: Images())]
"""


def test_pixels_from_0_to_255_stop_it_with_what_was_seen(
    make_plugin: PluginMaker, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    make_plugin("wide", WIDE)
    assert run(["train", "--dataset", "wide", "--arch", "lenet", "--out", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert "63.75" in error
    assert "[0,1]" in error


def test_normalised_pixels_are_refused(tmp_path: Path) -> None:
    """(0.8 - 0.5) / 0.25 = 1.2 is no pixel: normalising belongs to the model, after the noise."""
    x = np.full((2, 8, 8, 3), 0.5, np.float32)
    x[:, 0, 0, 0] = 0.8
    np.savez(tmp_path / "a.npz", images=(x - 0.5) / 0.25, labels=np.arange(2))
    with pytest.raises(SmoothctlError, match=r"from 0 to 1\.2"):
        open_dataset(dataset("npz"), "test", tmp_path / "a.npz")


def test_a_variable_is_no_requirement(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert not [name for name in os.environ if name.startswith("IMAGENET")]
    with pytest.raises(UsageError, match="`data"):
        open_dataset(dataset("imagenet"), "val", None)


def test_torchvisions_files_are_read_as_they_are(tmp_path: Path) -> None:
    """Fashion-MNIST's idx files, written by hand from the format's description."""
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    array = np.random.default_rng(0).integers(0, 256, (3, 28, 28), np.uint8)
    for part in ("train", "t10k"):
        head = b"".join(int(number).to_bytes(4, "big") for number in (2051, 3, 28, 28))
        (raw / f"{part}-images-idx3-ubyte").write_bytes(head + array.tobytes())
        labels = b"".join(int(number).to_bytes(4, "big") for number in (2049, 3)) + bytes([0, 9, 5])
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(labels)
    known, images = open_dataset(dataset("fashion-mnist"), "test", tmp_path)
    torch.testing.assert_close(pixels(images, 1), torch.from_numpy(array[1])[None].float() / 255)
    assert known.class_names[images[1][1]] == "Ankle boot"


def test_svhns_files_are_read_upright(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SVHN's arrays are [H,W,C,N], and its label 10 is the digit 0."""
    from scipy.io import savemat
    from torchvision.datasets import SVHN

    array = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 2), np.uint8)
    savemat(tmp_path / "test_32x32.mat", {"X": array, "y": np.array([[10], [3]])})
    checksum = hashlib.md5((tmp_path / "test_32x32.mat").read_bytes()).hexdigest()
    monkeypatch.setitem(SVHN.split_list, "test", ["http://127.0.0.1:9/x", "test_32x32.mat", checksum])
    _, images = open_dataset(dataset("svhn"), "test", tmp_path)
    np.testing.assert_array_equal(images[1][0], array[..., 1])
    assert [images[index][1] for index in range(2)] == [0, 3]
