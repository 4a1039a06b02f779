"""Bringing images to a network's size: before the noise, and on record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageOps

from smoothctl.base.draws import Draws
from smoothctl.hooks.datasets import LabelledImages
from smoothctl.images.files import plain_image

Crop = Callable[[Image.Image, tuple[int, int], Draws], Image.Image]


@dataclass(frozen=True)
class Fit:
    """Grey or RGB, then scaled (bilinear), then cropped in the centre to ``shape`` (C,H,W).

    ``resize`` is the length of the shorter side before the crop; None means that the image just covers it.
    """

    shape: tuple[int, int, int]
    resize: int | None = None

    def __call__(self, image: Image.Image) -> Image.Image:
        channels, height, width = self.shape
        image = plain_image(image).convert("L" if channels == 1 else "RGB")
        if image.size == (width, height):
            return image
        if self.resize is None:
            return ImageOps.fit(image, (width, height), Image.Resampling.BILINEAR)
        short = min(image.size)
        scaled = [max(1, self.resize * side // short) for side in image.size]
        image = image.resize((scaled[0], scaled[1]), Image.Resampling.BILINEAR)
        left, top = round((scaled[0] - width) / 2), round((scaled[1] - height) / 2)
        return image.crop((left, top, left + width, top + height))

    def __str__(self) -> str:
        channels, height, width = self.shape
        scale = "to cover" if self.resize is None else f"shorter side to {self.resize}, centre crop"
        return f"{'grey' if channels == 1 else 'RGB'}, bilinear, {scale} {height}x{width}"


@dataclass(frozen=True)
class FittedImages:
    """A source whose PIL images are brought to one shape; other kinds of images stay as they are.

    ``split`` names it in messages; ``crop`` is what training does instead, at random.
    """

    source: LabelledImages
    fit: Fit
    split: str = ""
    crop: Crop | None = None

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int, /) -> tuple[Any, int]:
        image, label = self.source[index]
        return (self.fit(image) if isinstance(image, Image.Image) else image), label

    def draw(self, index: int, draws: Draws) -> tuple[Any, int]:
        """An image as training sees it, by random numbers of its own."""
        image, label = self.source[index]
        if self.crop is None or not isinstance(image, Image.Image):
            return self[index]
        channels, height, width = self.fit.shape
        return self.crop(plain_image(image).convert("L" if channels == 1 else "RGB"), (height, width), draws), label

    def __getattr__(self, name: str) -> Any:
        if name in ("source", "fit", "split", "crop") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.source, name)


def transform_of(images: LabelledImages) -> str:
    """What was done to the images before the noise; empty if nothing."""
    return str(images.fit) if isinstance(images, FittedImages) else ""
