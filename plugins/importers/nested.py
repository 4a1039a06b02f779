"""A training script's dictionary with the weights under one of its keys.

``{epoch, arch, state_dict, optimizer}`` of Cohen et al. 2019 and the ImageNet example of PyTorch,
``{net, epoch}`` of MACER, ``{epoch, state_dict, optimizer, scheduler}`` of the CRT paper, ``{state_dict,
state_dict_ema, args}`` of timm, ``{model, model_ema, args}`` of torchvision's references, Lightning's, and the like.
"""

from __future__ import annotations

from typing import Any

from smoothctl import Imported, Importer, UsageError, hookimpl

ARGUMENTS = ("args", "hyper_parameters", "config")


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
        raise UsageError(f"found weights under the keys {', '.join(map(str, found))}; choose with `state_key=KEY`")
    epochs = content.get("epoch")
    return Imported(
        content[found[0]],
        f"its key {found[0]!r}",
        _find_arch(content),
        int(epochs) if isinstance(epochs, int) else None,
    )


def _find_arch(content: dict[str, Any]) -> str | None:
    """The name that the script kept, by itself or among its arguments."""
    arguments = [content.get(name) for name in ARGUMENTS]
    places = [content, *(place if isinstance(place, dict) else getattr(place, "__dict__", {}) for place in arguments)]
    names = (place.get(key) for place in places for key in ("arch", "model"))
    return next((name for name in names if isinstance(name, str) and name), None)


@hookimpl
def register_importers() -> list[Importer]:
    return [Importer("nested", read, summary="a dictionary with the weights under state_dict, net, model or the like")]
