"""Datasets in Hugging Face's format: ``--dataset huggingface --data PATH_OR_NAME``."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from smoothctl import Dataset, DatasetMissing, UsageError, hookimpl, plain_image

STAND_INS = {"test": ("validation", "valid", "val")}


@dataclass(frozen=True)
class TableImages:
    """A table's column of images with its column of classes; images are read one at a time."""

    table: Any
    image: str
    labels: tuple[int, ...]
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int, /) -> tuple[Image.Image, int]:
        """The image, which is turned upright where it is decoded. Raises OSError for pixels of more than 8 bits."""
        return plain_image(self.table[index][self.image]), self.labels[index]


def load(split: str, data: Path | None, download: bool) -> TableImages:
    """Read what ``save_to_disk`` wrote, or a dataset of the hub by its name, from the cache unless ``download``.

    A dataset without splits is every split; where there is no test, validation stands for it.
    """
    if data is None:
        raise UsageError("dataset huggingface needs `data`, a folder that save_to_disk wrote or a name of the hub")
    if importlib.util.find_spec("datasets") is None:
        raise UsageError(f"reading {data} needs Hugging Face's datasets: pip install 'smoothctl[huggingface]'")
    import datasets

    opened = _open_folder(data) if data.exists() else _open_name(data.as_posix(), download)
    if isinstance(opened, datasets.DatasetDict):
        found = next((name for name in (split, *STAND_INS.get(split, ())) if name in opened), None)
        if found is None:
            raise UsageError(f"{data} has the splits {', '.join(opened)}, not {split!r}; choose with `split`")
        opened = opened[found]
    return _find_columns(opened, str(data))


def _open_folder(folder: Path) -> Any:
    import datasets

    try:
        return datasets.load_from_disk(str(folder))
    except Exception as error:  # what damaged files make pyarrow and datasets raise has no end
        raise UsageError(f"{folder} was not written by save_to_disk, or is damaged ({_line(error)})") from None


def _open_name(name: str, download: bool) -> Any:
    import datasets

    try:
        with contextlib.nullcontext() if download else _offline():
            return datasets.load_dataset(name)
    except Exception as error:  # the hub's clients raise whatever they like
        if download:
            raise UsageError(f"dataset {name} cannot be had from the hub ({_line(error)})") from None
        raise DatasetMissing("huggingface", Path(name), "a folder, or a name that is in the hub's cache") from None


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keep the hub's clients to their cache; they read their settings only when they are imported."""
    import datasets.config
    import huggingface_hub.constants

    places: tuple[Any, ...] = (datasets.config, huggingface_hub.constants)
    before = [place.HF_HUB_OFFLINE for place in places]
    try:
        for place in places:
            place.HF_HUB_OFFLINE = True
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            place.HF_HUB_OFFLINE = value


def _find_columns(table: Any, name: str) -> TableImages:
    """The columns of type Image and ClassLabel; of several, those named image and label."""
    import datasets

    image = _choose(table.features, datasets.Image, "image", name)
    label = _choose(table.features, datasets.ClassLabel, "label", name)
    try:
        labels = np.asarray(table.select_columns(label)[:][label])
    except Exception as error:  # as above
        raise UsageError(f"{name}: its column {label} cannot be read ({_line(error)})") from None
    if None in labels or labels.min(initial=0) < 0:
        raise UsageError(f"{name}: some images of this split have no label; choose another with `split`")
    return TableImages(table, image, tuple(labels.tolist()), tuple(table.features[label].names))


def _choose(features: Any, kind: type, usual: str, name: str) -> str:
    found = [column for column, feature in features.items() if isinstance(feature, kind)]
    if len(found) == 1 or usual in found:
        return found[0] if len(found) == 1 else usual
    if not found:
        raise UsageError(f"{name} has no column of type {kind.__name__}; it has {', '.join(features)}")
    raise UsageError(
        f"{name} has {', '.join(found)} of type {kind.__name__}; rename the one that is meant to {usual!r}"
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "huggingface",
            load,
            summary="a folder that save_to_disk of Hugging Face's datasets wrote, or a dataset of the hub by name",
            aliases=("hf",),
            splits=(),
            data_is_name=True,
        )
    ]
