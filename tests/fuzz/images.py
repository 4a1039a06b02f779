"""Images, and what datasets say of them."""

from __future__ import annotations

import functools
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.fuzz import damage, made
from tests.fuzz.hunting import Reader


def read_arrays(path: Path) -> None:
    from smoothctl.images.arrays import read_npz
    from smoothctl.images.datasets import pixels

    pixels(read_npz(path, "test"), 0)


def read_picture(path: Path) -> None:
    from smoothctl.evaluation.image_files import read_image

    read_image(path, (3, 8, 8))


def opens(name: str, split: str, up: int) -> Any:
    """Open a dataset whose folder lies ``up`` levels above the damaged file, and read its first image."""

    def read(path: Path) -> None:
        from smoothctl.hooks.registry import registry
        from smoothctl.images.datasets import READ_ERRORS, open_dataset, pixels

        dataset = registry().find("dataset", name).value
        _, images = open_dataset(dataset, split, path.parents[up], shape=None if name == "mnist" else (3, 8, 8))
        try:
            pixels(images, 0)
        except READ_ERRORS:  # such an image is a row of its own
            return

    return read


def _npz() -> bytes:
    out = io.BytesIO()
    images = np.arange(4 * 8 * 8 * 3, dtype=np.uint8).reshape(4, 8, 8, 3)
    np.savez(out, x_train=images, y_train=np.arange(4), x_test=images, y_test=np.arange(4))
    return out.getvalue()


def _image(kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.arange(12 * 12 * 3, dtype=np.uint8).reshape(12, 12, 3)).save(out, kind)
    return out.getvalue()


def mnist(which: str, folder: Path) -> Path:
    """Torchvision's files of MNIST, with three images in each."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        sizes = b"".join(size.to_bytes(4, "big") for size in (3, 28, 28))
        (raw / f"{part}-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + sizes + bytes(3 * 28 * 28))
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + (3).to_bytes(4, "big") + bytes((1, 5, 9)))
    return raw / which


def imagenet(mapping: str, folder: Path) -> Path:
    """A flat folder of three images, and a mapping beside it."""
    labels = {"a.png": "n01440764", "b.png": "n01443537", "c.png": "2"}
    (folder / "val").mkdir(parents=True, exist_ok=True)
    for name in labels:
        (folder / "val" / name).write_bytes(_image("PNG"))
    as_lines = "".join(f"{name} {label}\n" for name, label in labels.items())
    (folder / mapping).write_text(json.dumps(labels) if mapping.endswith(".json") else as_lines)
    return folder / mapping


def devkit(damaged: str, folder: Path) -> Path:
    """A flat folder of two images with the ground truth of the devkit and the table that explains it."""
    from scipy.io import savemat

    (folder / "val").mkdir(parents=True, exist_ok=True)
    for number in (1, 2):
        (folder / "val" / f"ILSVRC2012_val_{number:08d}.png").write_bytes(_image("PNG"))
    synsets = np.array([(1, "n01440764"), (2, "n01443537")], dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O")])
    savemat(folder / "meta.mat", {"synsets": synsets})
    (folder / TRUTH).write_text("2\n1\n")
    return folder / damaged


def tiny_imagenet(folder: Path) -> Path:
    """Two classes of one image, and the annotations of the others."""
    for name in ("n01443537", "n01629819"):
        (folder / "train" / name / "images").mkdir(parents=True, exist_ok=True)
        (folder / "train" / name / "images" / f"{name}_0.JPEG").write_bytes(_image("JPEG"))
    (folder / "val" / "images").mkdir(parents=True, exist_ok=True)
    for number in (0, 1):
        (folder / "val" / "images" / f"val_{number}.JPEG").write_bytes(_image("JPEG"))
    said = folder / "val" / "val_annotations.txt"
    said.write_text("val_0.JPEG\tn01443537\t0\t32\t44\t62\nval_1.JPEG\tn01629819\t52\t55\t57\t59\n")
    return said


def hugging_face(damaged: str, folder: Path) -> Path:
    """What ``save_to_disk`` of Hugging Face's datasets writes: two images with their classes."""
    import datasets

    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    images = [Image.open(io.BytesIO(_image("PNG"))) for _ in range(2)]
    shutil.rmtree(folder, ignore_errors=True)
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict({"image": images, "label": [0, 1]}, features=features).save_to_disk(folder)
    return folder / damaged


TRUTH = "ILSVRC2012_validation_ground_truth.txt"
DOCUMENT, LINES = (damage.bytes_of, damage.document), (damage.bytes_of, damage.words)
READERS = (
    Reader("arrays", made.file("images.npz", _npz()), (damage.bytes_of, damage.zipped, damage.archive), read_arrays),
    *(
        Reader(kind.lower(), made.file(f"image.{kind.lower()}", _image(kind)), (damage.bytes_of,), read_picture)
        for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
    ),
    *(
        Reader(name, functools.partial(mnist, name), (damage.bytes_of,), opens("mnist", "test", 2))
        for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
    ),
    Reader("ImageNet's val.txt", functools.partial(imagenet, "val.txt"), LINES, opens("imagenet", "val", 0)),
    Reader("ImageNet's labels", functools.partial(imagenet, "val_labels.json"), DOCUMENT, opens("imagenet", "val", 0)),
    Reader("devkit", functools.partial(devkit, TRUTH), LINES, opens("imagenet", "val", 0), share=0.02),
    Reader("meta.mat", functools.partial(devkit, "meta.mat"), LINES[:1], opens("imagenet", "val", 0), share=0.02),
    Reader("val_annotations.txt", tiny_imagenet, (damage.bytes_of, damage.table), opens("tiny-imagenet", "val", 1)),
    *(
        Reader(
            f"Hugging Face's {name}", functools.partial(hugging_face, name), DOCUMENT, opens("huggingface", "all", 0)
        )
        for name in ("dataset_info.json", "state.json")
    ),
)
