"""ImageNet (ILSVRC 2012): 224x224 crops of a thousand classes, in class folders or a flat ``val`` with a mapping."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

from torch import Tensor

from smoothctl import (
    Dataset,
    DatasetMissing,
    Draws,
    ImageFiles,
    Recipe,
    UsageError,
    class_folders,
    hookimpl,
    image_endings,
    random_flip,
    random_resized_crop,
)

GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
DEVKIT = "ILSVRC2012_devkit_t12/data"
KAGGLE = "LOC_val_solution.csv"
READ_TABLE = """
import json, sys
from scipy.io import loadmat
synsets = loadmat(sys.argv[1], squeeze_me=True, variable_names=["synsets"])["synsets"]
print(json.dumps(dict(zip(map(int, synsets["ILSVRC2012_ID"]), map(str, synsets["WNID"])))))
"""
MAPPINGS = ("val.txt", KAGGLE, "val_labels.json", "val_map.txt", "val_list.txt", GROUND_TRUTH)


@functools.cache
def find_class_names() -> tuple[str, ...]:
    """The thousand WordNet ids in their sorted order, which timm brings along."""
    from timm.data.imagenet_info import ImageNetInfo

    return tuple(ImageNetInfo().label_names())


def load(split: str, data: Path | None, download: bool) -> ImageFiles:
    """Read ``train`` or ``val`` below ``data`` (or below Kaggle's ``ILSVRC/Data/CLS-LOC``), never shuffled."""
    place = data or Path("data/imagenet")
    roots = (place, place / "ILSVRC/Data/CLS-LOC", place / "imagenet")
    root = next((root for root in roots if (root / split).is_dir()), None)
    if root is None:
        raise DatasetMissing("imagenet", place, f"{split}/n01440764/... and its companions", fetchable=False)
    names = find_class_names()
    images = class_folders(root / split)
    if images.paths:
        return _in_known_order(images, names, root / split)
    return _flat(root / split, [place, root, root / split, place / DEVKIT], names)


def _in_known_order(images: ImageFiles, names: tuple[str, ...], place: Path) -> ImageFiles:
    """Folders by WordNet id count among the thousand, even if only some are there."""
    known = {name: label for label, name in enumerate(names)}
    if unknown := [name for name in images.class_names if name not in known]:
        raise UsageError(f"{place}/{unknown[0]} is no WordNet id of ImageNet; a tree of one's own is `dataset=folder`")
    labels = tuple(known[images.class_names[label]] for label in images.labels)
    return ImageFiles(images.root, images.paths, labels, names)


def _flat(folder: Path, places: list[Path], names: tuple[str, ...]) -> ImageFiles:
    """A folder of images with their labels in a mapping file in one of the places."""
    files = sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() in image_endings())
    mapping = next((place / name for place in places for name in MAPPINGS if (place / name).is_file()), None)
    if mapping is None:
        raise UsageError(
            f"{folder} has no class folders (n01440764/...) and {len(files)} images without labels;\n"
            f"sort them into class folders, or put a mapping of file names to WordNet ids or numbers beside them: "
            f"{' or '.join(MAPPINGS[:3])}, or the folder of the devkit: {DEVKIT}"
        )
    labels = _read_mapping(mapping, {Path(file).stem for file in files})
    known = {name: label for label, name in enumerate(names)}
    if missing := [file for file in files if Path(file).stem not in labels]:
        raise UsageError(f"{mapping} has no label for {len(missing)} of {len(files)} images, such as {missing[0]}")
    chosen = [labels[Path(file).stem] for file in files]
    numbers = [known[label] if label in known else int(label) if label.isdecimal() else -1 for label in chosen]
    if wrong := [label for label, number in zip(chosen, numbers, strict=True) if not 0 <= number < len(names)]:
        raise UsageError(f"{mapping}: {wrong[0]!r} is neither a WordNet id of ImageNet nor a number below {len(names)}")
    return ImageFiles(folder, tuple(files), tuple(numbers), names)


def _read_mapping(path: Path, images: set[str]) -> dict[str, str]:
    """Labels by file names without endings: JSON, or a line for each file with its label after a blank or a comma, or
    the devkit's.

    Raises UsageError, with the lines, for a file that is named twice or, unless it is ImageNet's own table of all
    images, is not among ``images``.
    """
    if path.name == GROUND_TRUTH:
        return _read_devkit(path)
    try:
        entries = _read_json(path) if path.suffix == ".json" else _read_lines(path)
    except ValueError as error:
        raise UsageError(f"{path} cannot be read ({error})") from None
    first: dict[str, str] = {}
    labels: dict[str, str] = {}
    for where, name, label in entries:
        stem = Path(name).stem
        if stem in labels:
            raise UsageError(f"{path} names {name} twice, {first[stem]} and {where}; leave one of them out")
        if stem not in images and path.name != KAGGLE:
            raise UsageError(f"{path} names {name} ({where}), which is not among the images; leave that out")
        first[stem], labels[stem] = where, label
    return labels


def _read_lines(path: Path) -> list[tuple[str, str, str]]:
    """Where, name and label of each line; raises ValueError for a line that is none."""
    read = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        parts = line.replace(",", " ").split()
        if not parts or parts[0] == "ImageId":
            continue
        if len(parts) < 2:
            raise ValueError(f"line {number} has no label: {line[:60]!r}")
        read.append((f"line {number}", parts[0], parts[1]))
    return read


def _read_json(path: Path) -> list[tuple[str, str, str]]:
    """Where, name and label of each entry of a table, in its order, names that come twice included."""
    pairs = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=list)
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise ValueError("it is no table of file names and labels")
    return [(f"entry {number}", str(name), str(label)) for number, (name, label) in enumerate(pairs, start=1)]


def _read_devkit(path: Path) -> dict[str, str]:
    """Labels of the images by their numbers: ids from 1 to 1000 that only the table ``meta.mat`` beside explains.

    Raises UsageError if the table is missing or lacks one of them.
    """
    table = path.with_name("meta.mat")
    try:
        wordnet = _read_table(table)
        numbers = [int(line) for line in path.read_text().split()]
        return {f"ILSVRC2012_val_{at:08d}": wordnet[number] for at, number in enumerate(numbers, start=1)}
    except (OSError, KeyError, ValueError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        raise UsageError(f"{path} cannot be read with {table}, which says what its numbers mean ({reason})") from None


def _read_table(table: Path) -> dict[int, str]:
    """WordNet ids by number, read by another process: there are damaged tables on which scipy's reader crashes.

    Raises ValueError if it cannot be read.
    """
    table.open("rb").close()  # what cannot be opened is not damaged
    done = subprocess.run([sys.executable, "-c", READ_TABLE, str(table)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(next(iter(done.stderr.splitlines()[-1:]), f"the reader of .mat files ended {done.returncode}"))
    return {int(number): str(name) for number, name in json.loads(done.stdout).items()}


def augment(x: Tensor, draws: Draws) -> Tensor:
    """Horizontal flip, after the random crop."""
    return random_flip(x, draws)


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "imagenet",
            load,
            shape=(3, 224, 224),
            mean=(0.485, 0.456, 0.406),
            std=(0.229, 0.224, 0.225),
            summary="ImageNet (ILSVRC 2012), a thousand classes; the field certifies its val with --every 100",
            splits=("train", "val"),
            augment=augment,
            crop=random_resized_crop,
            resize=256,
            find_class_names=find_class_names,
            like="cifar10",
            recipe=Recipe(
                arch="resnet50", sigma=0.5, epochs=90, batch_size=400, lr=0.1, milestones=(30, 60),
                source="Cohen et al. 2019, ImageNet setting",
            ),
        )
    ]  # fmt: skip
