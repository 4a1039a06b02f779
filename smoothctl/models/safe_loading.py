"""Reading files of tensors and plain data without running any code, and loading weights whole or not at all."""

from __future__ import annotations

import argparse
import json
import pathlib
import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from smoothctl.base.archives import check_archive
from smoothctl.base.errors import SmoothctlError
from smoothctl.models.other_files import something_else
from smoothctl.models.settings import EXPORTED

FORMAT = "smoothctl-model-1"
COUNTER = "num_batches_tracked"
# What torch's batch norm, its AveragedModel (SWA, EMA) and thop count. No output depends on them.
COUNTERS = (COUNTER, "n_averaged", "total_ops", "total_params")


def read_content(file: Path) -> Any:
    """What a file of safetensors or of torch's holds, its tensors on the CPU.

    NumPy scalars, paths and argparse's plain Namespace are read; any other object is refused with a
    SmoothctlError, as is what is no such file or unpacks to far more than its size.
    """
    if file.suffix in EXPORTED:
        raise SmoothctlError(f"{file} is for other runtimes; give the run or model file that it was exported from")
    try:
        if _is_safetensors(file):
            return _read_safetensors(file)
        check_archive(file)
        with torch.serialization.safe_globals(_harmless()), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return torch.load(file, map_location="cpu", weights_only=True)
    except SmoothctlError:
        raise
    except pickle.UnpicklingError as error:
        raise SmoothctlError(f"{file} {something_else(file) or _refusal(str(error))}") from None
    except Exception as error:  # what damaged files raise has no end
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        raise SmoothctlError(f"{file} {something_else(file) or f'is not a model file ({reason})'}") from None


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
    before and since NumPy 2, paths, and the namespaces in which scripts keep their arguments."""
    scalar: Any = np.float64(0).__reduce__()[0]
    kinds = {type(np.dtype(name)) for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")}
    from _codecs import encode

    return [
        (scalar, "numpy._core.multiarray.scalar"),
        (scalar, "numpy.core.multiarray.scalar"),
        np.dtype,
        *kinds,
        encode,
        argparse.Namespace,
        pathlib.PosixPath,
    ]


def _is_safetensors(file: Path) -> bool:
    """By its ending, or as it begins: the length of a header, and the header's brace."""
    if file.suffix == ".safetensors":
        return True
    with file.open("rb") as handle:
        start = handle.read(9)
    return len(start) == 9 and start[8:] == b"{" and int.from_bytes(start[:8], "little") < file.stat().st_size


def _read_safetensors(file: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as handle:
            metadata = handle.metadata() or {}
            tensors = {key: handle.get_tensor(key) for key in handle.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise SmoothctlError(f"{file} is not a safetensors file ({error})") from None
    # As safetensors.torch.save_model does: of tensors that share memory one is stored, the others refer to it.
    tensors |= {key: tensors[kept] for key, kept in metadata.items() if key not in tensors and kept in tensors}
    if metadata.get("format") != FORMAT:
        return tensors
    try:
        info = json.loads(metadata["info"])
    except (KeyError, ValueError, RecursionError) as error:
        raise SmoothctlError(f"{file} has a damaged description ({type(error).__name__}: {error})") from None
    return {"format": FORMAT, "info": info, "state_dict": tensors}


def write_safetensors(file: Path, state: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors, each that shares its memory with another once, under the first of its names.

    Raises RuntimeError if the file cannot be written, as torch does.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    kept: dict[Any, str] = {}
    tensors, shared = {}, {}
    for key, value in state.items():
        place = (value.device, value.data_ptr(), value.dtype, value.shape, value.stride())
        if value.numel() and place in kept and key not in metadata:
            shared[key] = kept[place]
            continue
        kept.setdefault(place, key)
        # A copy, as parts of one tensor may overlap.
        tensors[key] = value.detach().to("cpu", copy=True).contiguous()
    try:
        save_file(tensors, file, {**metadata, **shared})
    except SafetensorError as error:
        raise RuntimeError(str(error)) from error


def misfits(own: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> str:
    """Say what of a network's ``own`` state is missing, left over or misshapen in ``state``; empty if it fits.

    Counters, on which no output depends, may be missing (torch's batch norms keep theirs since 0.4.1) or left over.
    """
    missing = [key for key in own if key not in state and not key.endswith(COUNTER)]
    extra = [key for key in state if key not in own and not is_counter(key)]
    shapes = [key for key in own if key in state and own[key].shape != state[key].shape]
    if not (missing or extra or shapes):
        return ""
    parts = [f"{count_matches(own, state)} of {len(own)} tensors matched"]
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


def is_counter(key: str) -> bool:
    """Whether a name is that of a known counter, at whatever depth."""
    return key.rpartition(".")[2] in COUNTERS


def count_matches(own: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> int:
    """How many tensors have the name and the shape of a network's own."""
    return sum(key in state and own[key].shape == state[key].shape for key in own)


def load_state(network: nn.Module, state: Mapping[str, Tensor], file: Path, arch: str) -> None:
    """Load all weights; raises SmoothctlError that lists what is missing, left over or misshapen."""
    own = network.state_dict()
    if problem := misfits(own, state):
        raise SmoothctlError(f"{file} does not fit its architecture {arch}: {problem}")
    counters = {key: value for key, value in own.items() if key.endswith(COUNTER)}
    network.load_state_dict({**counters, **{key: state[key] for key in own if key in state}}, strict=True)
