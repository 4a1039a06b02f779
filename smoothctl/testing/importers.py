"""An importer is held to its layout, and to leaving others alone."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from smoothctl.hooks.networks import Imported, Importer
from smoothctl.models.safe_loading import read_content

OTHERS: tuple[Any, ...] = (None, 1, "text", [], {}, {"epoch": 1, "notes": "no weights"})


def check_importer(importer: Importer, content: Any) -> Imported:
    """Write ``content`` to a file, and hold an importer to finding its weights as the engine reads it.

    Returns what it found, for further tests. Raises AssertionError with what does not fit, such as a layout of
    somebody else that it takes for its own.
    """
    name = importer.name
    assert importer.summary, f"{name}: say in summary what it reads"
    for other in OTHERS:
        assert importer.read(other) is None, f"{name}: it must give None for another layout, such as {other!r}"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "checkpoint.pt"
        torch.save(content, file)
        found = importer.read(read_content(file))
    assert isinstance(found, Imported), f"{name}: it does not read its own layout"
    assert found.state, f"{name}: it finds no weights"
    others = [key for key, value in found.state.items() if not isinstance(value, Tensor)]
    assert not others, f"{name}: {others[0]} among the weights is no tensor"
    return found
