"""Labelled images under a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from smoothctl.hooks.recipes import Recipe

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image
    from torch import Tensor

    from smoothctl.base.draws import Draws


class LabelledImages(Protocol):
    """A split of a dataset: anything with a length that gives ``(image, label)`` for an index.

    An image is a PIL image, an array [H,W] or [H,W,C] (uint8, or float in [0,1]), or a float tensor
    [C,H,W] in [0,1]. A source may also have ``image_id(index) -> str``, a name that outlives
    re-ordering, such as a relative path, ``class_names``, if the dataset leaves them open, and ``levels``, if its
    pixels are floats that are multiples of 1/levels: like 8-bit images, those are certified in exact arithmetic.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> tuple[Any, int]: ...


@dataclass(frozen=True)
class ArrayImages:
    """Images that fit in memory: uint8, or float in [0,1], [N,H,W] or [N,H,W,C], with int64 labels [N].

    ``class_names`` is for a dataset whose names are known once it is opened, ``levels`` for floats that are multiples
    of 1/levels.
    """

    images: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...] = ()
    levels: int | None = None

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int, /) -> tuple[np.ndarray, int]:
        return self.images[index], int(self.labels[index])


@dataclass(frozen=True)
class Dataset:
    """Labelled images under a name.

    ``load(split, data, download)`` gives one split, looking only below ``data`` (None: the
    dataset's own place), and downloads only if ``download`` is true. Missing files are a
    :class:`smoothctl.DatasetMissing`. ``augment(x, draws)`` changes a training batch
    [B,C,H,W] of pixels in [0,1]; ``crop(image, (height, width), draws)`` takes the place of resizing for PIL
    images in training.

    What is empty is known once the images are opened: ``class_names`` from the images' own
    ``class_names`` (or from ``find_class_names``, where that needs no files), ``shape`` from the
    model, ``--size`` or the first image, ``mean`` and ``std`` as 0.5. PIL images are brought to
    the shape by the engine: scaled so that the shorter side is ``resize`` for a crop of ``shape``
    (None: so that they just cover it), then cropped in the centre. Empty ``splits`` are those of the
    files. ``data_is_name``: ``data`` need not be a place. ``like`` names a dataset whose recipes methods
    follow here, with this dataset's own schedule, where they have none for this one.
    """

    name: str
    load: Callable[[str, Path | None, bool], LabelledImages]
    shape: tuple[int, int, int] | tuple[()] = ()
    class_names: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    summary: str = ""
    aliases: tuple[str, ...] = ()
    splits: tuple[str, ...] = ("train", "test")
    augment: Callable[[Tensor, Draws], Tensor] | None = None
    crop: Callable[[Image.Image, tuple[int, int], Draws], Image.Image] | None = None
    recipe: Recipe = field(default_factory=Recipe)
    resize: int | None = None
    find_class_names: Callable[[], tuple[str, ...]] | None = None
    data_is_name: bool = False
    like: str = ""
