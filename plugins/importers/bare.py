"""A file that is a state dict and nothing else: ``torch.save(model.state_dict(), FILE)``."""

from __future__ import annotations

from typing import Any

from smoothctl import Imported, Importer, hookimpl


def read(content: Any) -> Imported | None:
    """Take a non-empty dictionary from texts to tensors as the weights."""
    from torch import Tensor

    if not isinstance(content, dict) or not content:
        return None
    if not all(isinstance(key, str) and isinstance(value, Tensor) for key, value in content.items()):
        return None
    return Imported(content, "the file itself")


@hookimpl
def register_importers() -> list[Importer]:
    return [Importer("bare", read, summary="a state dict and nothing else")]
