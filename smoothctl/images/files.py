"""Images in files: class folders in their documented order, and reading that names what is broken."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import BinaryIO, ClassVar, Self

from PIL import Image, ImageOps, UnidentifiedImageError

from smoothctl.base import console
from smoothctl.base.errors import UsageError

MAX_PIXELS = "SMOOTHCTL_MAX_PIXELS"
MOST_PIXELS = 1 << 26
BACKGROUND = "white"
# Pillow knows these by name, but cannot decode them, or starts another program to do it.
LEFT_OUT = frozenset({"EPS", "WMF", "BUFR", "GRIB", "HDF5", "MPEG", "PDF"})
# By these a file is known whatever its ending: they begin with a mark that nothing else has.
MARKED = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "JPEG2000", "PPM", "QOI")


@dataclass(frozen=True)
class ImageFiles:
    """Image files below ``root`` with their labels, and the names of the classes; read one at a time.

    ``subset`` says how they were chosen among those that lie there; empty if they are all.
    """

    root: Path
    paths: tuple[str, ...]
    labels: tuple[int, ...]
    class_names: tuple[str, ...]
    subset: str = ""
    levels: ClassVar[int] = 255

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int, /) -> tuple[Image.Image, int]:
        """The image, turned upright, in grey or RGB. Raises OSError, with the file's name, if it is broken."""
        return open_image(self.root / self.paths[index]), self.labels[index]

    def image_id(self, index: int) -> str:
        """The path below the root."""
        return self.paths[index]

    def take(self, indices: Iterable[int], subset: str) -> Self:
        """Some of the images, in the order of the indices."""
        kept = list(indices)
        paths, labels = tuple(self.paths[at] for at in kept), tuple(self.labels[at] for at in kept)
        return replace(self, paths=paths, labels=labels, subset=subset)


def open_image(file: Path | BinaryIO) -> Image.Image:
    """Read an image: upright by its EXIF, in grey or RGB of 8 bits, transparent parts on white.

    Raises OSError, with the file's name, for what is no image, is damaged, or has more pixels than
    SMOOTHCTL_MAX_PIXELS allows.
    """
    most, name = _most_pixels(), name_of(file)
    try:
        with _own_limit(), warnings.catch_warnings(action="ignore"), Image.open(file, formats=_formats()) as opened:
            if opened.width * opened.height > most:
                raise OSError(
                    f"{opened.width}x{opened.height} are more than {most:,} pixels; if it is meant, set {MAX_PIXELS}"
                )
            opened.load()
            return plain_image(ImageOps.exif_transpose(opened), name)
    except FileNotFoundError:
        raise OSError(f"{name} cannot be read (there is no such file)") from None
    except UnidentifiedImageError:
        raise OSError(f"{name} cannot be read (it is no image that Pillow knows)") from None
    except Exception as error:  # what damaged images raise has no end
        raise OSError(f"{name} cannot be read ({' '.join(str(error).split()) or type(error).__name__})") from None


def name_of(file: Path | BinaryIO) -> str:
    """How to call an image in a message."""
    return str(file) if isinstance(file, Path) else "the image"


def plain_image(image: Image.Image, name: str = "an image") -> Image.Image:
    """An image in grey or RGB of 8 bits, its transparent parts on white. Raises OSError for other pixels."""
    if image.mode.startswith(("I", "F")):
        raise OSError(f"{image.mode} pixels of more than 8 bits have no fixed scale; save it in 8 bits")
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        layered = image.convert("RGBA")
        if layered.getchannel("A").getextrema()[0] < 255:  # type: ignore[operator]
            _say_background(name)
            ground = Image.new("RGBA", image.size, BACKGROUND)
            return Image.alpha_composite(ground, layered).convert("RGB")
    return image if image.mode == "L" else image.convert("RGB")


_told: set[str] = set()


def _say_background(name: str) -> None:
    """Once, as a dataset has many of them."""
    if BACKGROUND not in _told:
        _told.add(BACKGROUND)
        console.note(f"{name} is transparent in part; such parts are taken on {BACKGROUND}")


def say_once(message: str) -> None:
    """Say something of a place of images, which is opened several times."""
    if message not in _told:
        _told.add(message)
        console.note(message)


def _most_pixels() -> int:
    text = os.environ.get(MAX_PIXELS)
    try:
        return MOST_PIXELS if text is None else int(float(text))
    except ValueError:
        raise UsageError(f"{MAX_PIXELS}={text}: give a whole number of pixels, such as 200000000") from None


@contextmanager
def _own_limit() -> Iterator[None]:
    """Put aside Pillow's limit, which only warns up to twice its value: ours stands in its place."""
    before = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = before


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    return tuple(sorted(set(Image.OPEN) - LEFT_OUT))


@cache
def image_endings() -> frozenset[str]:
    """The endings of the files that Pillow reads here, in lower case."""
    return frozenset(ending for ending, kind in Image.registered_extensions().items() if kind in _formats())


def _is_image(path: Path) -> bool:
    """By its ending, else by how it begins."""
    if path.suffix.lower() in image_endings():
        return True
    try:
        with _own_limit(), Image.open(path, formats=[kind for kind in MARKED if kind in _formats()]):
            return True
    except Exception:  # whatever is no image
        return False


def class_folders(place: Path, class_names: tuple[str, ...] | None = None) -> ImageFiles:
    """The images of a tree whose first level of folders are the classes.

    Classes are ``class_names``, by which folders are matched, or else all folders with an image, in the order of
    their names, or of their numbers if all names are numbers; the images of a class, at any depth, in the order of
    their paths. Hidden files are left out; what else is no image, and folders without one, are counted and said.
    Raises UsageError for a folder that is none of ``class_names``.
    """
    skipped: Counter[str] = Counter()
    found = {folder.name: find_images(folder, skipped) for folder in _folders(place)}
    there = sort_class_names(name for name, files in found.items() if files)
    names = there if class_names is None else list(class_names)
    if unknown := [name for name in there if name not in set(names)]:
        raise UsageError(
            f"{place} has the class {unknown[0]!r}, which is none of the {len(names)} classes to be matched by name: "
            f"{', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
        )
    _tell(place, skipped, [name for name, files in found.items() if not files], [n for n in names if n not in there])
    paths = [
        (path.relative_to(place).as_posix(), label) for label, name in enumerate(names) for path in found.get(name, ())
    ]
    return ImageFiles(place, tuple(path for path, _ in paths), tuple(label for _, label in paths), tuple(names))


def find_classes(place: Path) -> tuple[str, ...]:
    """The names of the class folders that hold an image, in their order."""
    return tuple(sort_class_names(each.name for each in _folders(place) if next(_walk(each, Counter()), None)))


def _folders(place: Path) -> list[Path]:
    return sorted(entry for entry in place.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _tell(place: Path, skipped: Counter[str], empty: list[str], missing: list[str]) -> None:
    """Say what was left out of a tree, if anything."""
    said = []
    if skipped:
        kinds = ", ".join(f"{count} {ending or 'without ending'}" for ending, count in skipped.most_common(5))
        said.append(f"{skipped.total()} files that are no images are skipped ({kinds})")
    if empty:
        said.append(f"folders without an image: {_few(sorted(empty))}")
    if missing:
        said.append(f"no image of {len(missing)} classes: {_few(missing)}")
    if said:
        say_once(f"{place}: {'; '.join(said)}")


def _few(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def sort_class_names(names: object) -> list[str]:
    """Class names in their order: by number if all are numbers (``2`` before ``10``), else by text."""
    listed = list(names)  # type: ignore[call-overload]
    numeric = all(name.isascii() and name.isdigit() for name in listed)
    return sorted(listed, key=(lambda name: (int(name), name)) if numeric else None)  # type: ignore[arg-type]


def find_images(place: Path, skipped: Counter[str] | None = None) -> list[Path]:
    """The image files below a folder, at any depth, in the order of their paths; others are counted by ending."""
    return sorted(_walk(place, Counter() if skipped is None else skipped))


def _walk(place: Path, skipped: Counter[str]) -> Iterator[Path]:
    for folder, _, names in os.walk(place, followlinks=True):
        for name in names:
            path = Path(folder) / name
            if name.startswith("."):
                continue
            if _is_image(path):
                yield path
            else:
                skipped[path.suffix.lower()] += 1
