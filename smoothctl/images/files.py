"""Images in files: class folders in their documented order, and reading that names what is broken."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageOps

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")


@dataclass(frozen=True)
class ImageFiles:
    """Image files below ``root`` with their labels, and the names of the classes; read one at a time."""

    root: Path
    paths: tuple[str, ...]
    labels: tuple[int, ...]
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int, /) -> tuple[Image.Image, int]:
        """The image, turned upright, in grey or RGB. Raises OSError, with the file's name, if it is broken."""
        path = self.root / self.paths[index]
        try:
            with Image.open(path) as opened:
                opened.load()
                if opened.mode.startswith(("I", "F")):
                    raise OSError(f"{opened.mode} pixels of more than 8 bits have no fixed scale; save it in 8 bits")
                upright = ImageOps.exif_transpose(opened)
                image = upright if upright.mode == "L" else upright.convert("RGB")
        except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
            raise OSError(f"{path} cannot be read ({' '.join(str(error).split())})") from None
        return image, self.labels[index]

    def image_id(self, index: int) -> str:
        """The path below the root."""
        return self.paths[index]


def class_folders(place: Path) -> ImageFiles:
    """The images of a tree whose first level of folders are the classes.

    Classes are in the order of their names, or of their numbers if all names are numbers; the images of
    a class, at any depth, in the order of their paths. Hidden files, and folders without an image, are left out.
    """
    folders = [entry for entry in place.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    found = {folder.name: find_images(folder) for folder in folders}
    names = sort_class_names(name for name, files in found.items() if files)
    paths = [(path.relative_to(place).as_posix(), label) for label, name in enumerate(names) for path in found[name]]
    return ImageFiles(place, tuple(path for path, _ in paths), tuple(label for _, label in paths), tuple(names))


def sort_class_names(names: object) -> list[str]:
    """Class names in their order: by number if all are numbers (``2`` before ``10``), else by text."""
    listed = list(names)  # type: ignore[call-overload]
    numeric = all(name.isascii() and name.isdigit() for name in listed)
    return sorted(listed, key=(lambda name: (int(name), name)) if numeric else None)  # type: ignore[arg-type]


def find_images(place: Path) -> list[Path]:
    """The image files below a folder, at any depth, in the order of their paths."""
    return sorted(
        Path(folder) / name
        for folder, _, names in os.walk(place, followlinks=True)
        for name in names
        if name.lower().endswith(ENDINGS) and not name.startswith(".")
    )
