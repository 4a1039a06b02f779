"""Single images: what is damaged, huge, turned or transparent."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from smoothctl.base.errors import UsageError
from smoothctl.images.files import open_image


def test_transparency_is_composed_on_white_in_every_mode(tmp_path: Path) -> None:
    hidden = Image.new("RGBA", (2, 1), (200, 10, 10, 0))
    hidden.putpixel((1, 0), (200, 10, 10, 255))
    hidden.save(tmp_path / "rgba.png")
    grey = Image.new("LA", (2, 1), (0, 0))
    grey.putpixel((1, 0), (0, 255))
    grey.save(tmp_path / "la.png")
    palette = Image.new("P", (2, 1), 0)
    palette.putpalette([9, 9, 9, 200, 10, 10])
    palette.putpixel((1, 0), 1)
    palette.save(tmp_path / "p.png", transparency=0)
    for name, kept in (("rgba", (200, 10, 10)), ("la", (0, 0, 0)), ("p", (200, 10, 10))):
        image = open_image(tmp_path / f"{name}.png")
        assert image.mode == "RGB"
        assert [image.getpixel((at, 0)) for at in range(2)] == [(255, 255, 255), kept]


def test_opaque_images_keep_their_mode(tmp_path: Path) -> None:
    Image.new("L", (3, 2), 7).save(tmp_path / "a.png")
    Image.new("RGBA", (3, 2), (1, 2, 3, 255)).save(tmp_path / "b.png")
    assert open_image(tmp_path / "a.png").mode == "L"
    assert open_image(tmp_path / "b.png").getpixel((0, 0)) == (1, 2, 3)


@pytest.mark.parametrize("turned", range(1, 9))
def test_every_turn_of_exif_is_undone(turned: int, tmp_path: Path) -> None:
    upright = Image.fromarray(np.kron(np.array([[0, 80, 160], [240, 40, 120]], np.uint8), np.ones((16, 16), np.uint8)))
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }  # fmt: skip
    stored = upright.transpose(undo[turned]) if turned in undo else upright
    exif = Image.Exif()
    exif[0x0112] = turned
    stored.save(tmp_path / "a.jpg", exif=exif, quality=100)
    read = np.asarray(open_image(tmp_path / "a.jpg").convert("L")).astype(int)
    assert np.abs(read - np.asarray(upright)).max() < 4


def test_a_limit_on_pixels_and_how_to_lift_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("L", (100, 60)).save(tmp_path / "a.png")
    monkeypatch.setenv("SMOOTHCTL_MAX_PIXELS", "5999")
    with pytest.raises(OSError, match=r"100x60 are more than 5,999 pixels; if it is meant, set SMOOTHCTL_MAX_PIXELS"):
        open_image(tmp_path / "a.png")
    monkeypatch.setenv("SMOOTHCTL_MAX_PIXELS", "6e3")
    assert open_image(tmp_path / "a.png").size == (100, 60)
    before = Image.MAX_IMAGE_PIXELS
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert open_image(tmp_path / "a.png").size == (100, 60)  # Pillow's own limit does not stand in the way
    assert before == 89_478_485
    monkeypatch.setenv("SMOOTHCTL_MAX_PIXELS", "many")
    with pytest.raises(UsageError, match="SMOOTHCTL_MAX_PIXELS=many"):
        open_image(tmp_path / "a.png")


@pytest.mark.parametrize("ending", ["png", "jpg", "gif", "bmp", "tif", "webp", "avif", "ppm", "ico", "tga"])
def test_damaged_images_are_read_or_refused_with_their_name(ending: str, tmp_path: Path) -> None:
    rng = random.Random(ending)
    path = tmp_path / f"a.{ending}"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 24, 3), np.uint8)).save(path)
    whole = path.read_bytes()
    for _ in range(60):
        data = bytearray(whole[: rng.randrange(1, len(whole) + 1)])
        for _ in range(4):
            data[rng.randrange(min(len(data), 200))] = rng.randrange(256)
        path.write_bytes(data)
        refusal = ""
        try:
            open_image(path)
        except OSError as error:
            refusal = str(error)
        assert not refusal or (str(path) in refusal and "\n" not in refusal)


def test_pictures_that_declare_far_more_than_they_hold(shared: Path, run_copy: Path, tmp_path: Path) -> None:
    """In a process of its own that may take 400 MB more than it starts with."""
    script = (
        "import sys, resource, torch, smoothctl.evaluation.image_files, smoothctl.cli\n"
        "run = smoothctl.cli.run\n"
        "run(['predict', sys.argv[1], sys.argv[2], '--n', '20'])\n"
        "start = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (start + 400_000_000, -1))\n"
        "sys.exit(run(['predict', sys.argv[1], sys.argv[3], '--n', '20']))\n"
    )
    Image.new("L", (8, 8)).save(tmp_path / "small.png")
    for picture in sorted((shared / "cases" / "images").iterdir()):
        command = [sys.executable, "-c", script, str(run_copy), str(tmp_path / "small.png"), str(picture)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment)
        assert done.returncode == 2, done.stderr
        (line,) = done.stderr.strip().splitlines()
        assert line.startswith(f"smoothctl: {picture} cannot be read")
