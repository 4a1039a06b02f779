"""Where and how the networks run: device, precision, seeds, versions."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

import torch
from torch import nn

from smoothctl.base import launcher
from smoothctl.base.errors import UsageError


def choose_device(name: str) -> torch.device:
    """Turn ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps`` into a device that exists here.

    Raises UsageError for anything else.
    """
    if name == "auto":
        if torch.cuda.is_available():
            # Under torchrun each worker has a device of its own.
            return torch.device("cuda", launcher.local_rank() % torch.cuda.device_count())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"`device={name}`: choose auto, cpu, cuda, cuda:INDEX or mps") from None
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not present.get(device.type, False):
        raise UsageError(f"`device={name}`: there is no such device here; `device=auto` takes what there is")
    return device


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Eval mode; each submodule's own mode is put back afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """So many threads for torch's operations on a CPU."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def matmul_precision(tf32: bool) -> Iterator[None]:
    """Full float32 in matrix products and convolutions of a GPU, or TF32."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=tf32):
            yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@contextmanager
def evaluating(model: nn.Module, tf32: bool = False) -> Iterator[None]:
    """Inference as certificates need it: eval mode, no gradients, full float32 unless ``tf32``.

    Parameters and buffers are not touched.
    """
    with eval_mode(model), matmul_precision(tf32), torch.inference_mode():
        yield


def versions() -> dict[str, str]:
    """The versions that a file records."""
    names = ("smoothctl", "torch", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
