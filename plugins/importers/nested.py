"""A training script's dictionary with the weights under one of its keys.

``{epoch, arch, state_dict, optimizer}`` of Cohen et al. 2019 and the ImageNet example of PyTorch,
``{net, epoch}`` of MACER, ``{epoch, state_dict, optimizer, scheduler}`` of the CRT paper, and the like.
"""

from __future__ import annotations

from typing import Any

from smoothctl import Imported, Importer, UsageError, hookimpl


def read(content: Any) -> Imported | None:
    """Take the one key that holds a state dict; raises SmoothctlError if several do."""
    from torch import Tensor

    if not isinstance(content, dict):
        return None
    found = [
        key
        for key, value in content.items()
        if isinstance(value, dict) and value and all(isinstance(tensor, Tensor) for tensor in value.values())
    ]
    if not found:
        return None
    if len(found) > 1:
        raise UsageError(f"found weights under the keys {', '.join(map(str, found))}; choose with --state-key KEY")
    arguments = content.get("args", None)
    arch = content.get("arch", getattr(arguments, "arch", None))
    epochs = content.get("epoch")
    return Imported(
        content[found[0]],
        f"its key {found[0]!r}",
        arch if isinstance(arch, str) else None,
        int(epochs) if isinstance(epochs, int) else None,
    )


@hookimpl
def register_importers() -> list[Importer]:
    return [Importer("nested", read, summary="a dictionary with the weights under state_dict, net, model or the like")]
