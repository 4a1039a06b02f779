"""Reading files of tensors and plain data without running any code, and loading weights whole or not at all."""

from __future__ import annotations

import argparse
import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from smoothctl.base.errors import SmoothctlError

COUNTER = "num_batches_tracked"


def read_content(file: Path) -> Any:
    """What a ``.safetensors`` file or a file of torch's holds, its tensors on the CPU.

    NumPy scalars and argparse's plain Namespace are read; any other object is refused with a
    SmoothctlError, as is what is no such file.
    """
    if file.suffix == ".safetensors":
        return _read_safetensors(file)
    try:
        with torch.serialization.safe_globals(_harmless()):
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise SmoothctlError(f"{file} {_refusal(str(error))}") from None
    except (RuntimeError, EOFError, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        if not file.stat().st_size:
            raise SmoothctlError(f"{file} is empty") from None
        raise SmoothctlError(
            f"{file} is not a model file ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
        ) from None


def _refusal(message: str) -> str:
    named = re.search(r"(?:GLOBAL|global:?|[Cc]lass|function) ([\w.]+\.\w+)", message)
    if named is None:
        return "is no file of torch's tensors and plain data; loading it otherwise could run code, so it is refused"
    return (
        f"refers to {named[1]}: loading it could run code, so it is refused. "
        "Where it was made, save the weights alone: torch.save(model.state_dict(), FILE)"
    )


def _harmless() -> list[Any]:
    """What old checkpoints hold besides tensors and can run nothing: NumPy scalars under their names
    before and since NumPy 2, and the namespaces in which scripts keep their arguments."""
    scalar: Any = np._core.multiarray.scalar  # type: ignore[attr-defined]
    kinds = {type(np.dtype(name)) for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")}
    from _codecs import encode

    return [
        scalar,
        (scalar, "numpy.core.multiarray.scalar"),
        np.dtype,
        *kinds,
        encode,
        argparse.Namespace,
    ]


def _read_safetensors(file: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as handle:
            metadata = handle.metadata() or {}
            tensors = {key: handle.get_tensor(key) for key in handle.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise SmoothctlError(f"{file} is not a safetensors file ({error})") from None
    if "info" not in metadata:
        return tensors
    return {"format": metadata.get("format"), "info": json.loads(metadata["info"]), "state_dict": tensors}


def misfits(own: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> str:
    """Say what of a network's ``own`` state is missing, left over or misshapen in ``state``; empty if it fits.

    Counters of batches, which torch's batch norms keep since 0.4.1 and which decide no output of
    ours, may be missing.
    """
    missing = [key for key in own if key not in state and not key.endswith(COUNTER)]
    extra = [key for key in state if key not in own]
    shapes = [key for key in own if key in state and own[key].shape != state[key].shape]
    if not (missing or extra or shapes):
        return ""
    matched = sum(key in state and own[key].shape == state[key].shape for key in own)
    parts = [f"{matched} of {len(own)} tensors matched"]
    for what, keys in (("missing", missing), ("left over", extra)):
        if keys:
            parts.append(f"{len(keys)} {what}, such as {', '.join(keys[:3])}")
    if shapes:
        first = shapes[0]
        parts.append(
            f"{len(shapes)} of another shape, such as {first} {tuple(state[first].shape)} "
            f"instead of {tuple(own[first].shape)}"
        )
    return "; ".join(parts)


def load_state(network: nn.Module, state: Mapping[str, Tensor], file: Path, arch: str) -> None:
    """Load all weights; raises SmoothctlError that lists what is missing, left over or misshapen."""
    if problem := misfits(network.state_dict(), state):
        raise SmoothctlError(f"{file} does not fit its architecture {arch}: {problem}")
    counters = {key: value for key, value in network.state_dict().items() if key.endswith(COUNTER)}
    network.load_state_dict({**counters, **state}, strict=True)
