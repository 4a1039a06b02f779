"""What a model file may ask for: plain settings of an architecture, and no more than its tensors can fill.

A file is data: it names no other file, address or code, and memory and time stay in proportion to its size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from torch.nn.parameter import is_lazy

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.networks import Architecture, ModelSpec

# Networks are made with parts that are replaced later, so they may pass what the file holds for a while.
SPARE_VALUES, SPARE_MODULES = 1 << 22, 10_000
TIMES_VALUES, TIMES_MODULES = 4, 100
WORD = re.compile(r"[A-Za-z0-9_+-]{0,64}")


@dataclass(frozen=True)
class Terms:
    """On which terms a network is built, and all the networks within it.

    ``initial``: options that choose the first weights count. ``held``: the tensors of the file that the options
    come from (None: they are the user's); ``confirmed`` are those that the user repeated.
    """

    initial: bool = False
    held: Mapping[str, Tensor] | None = None
    confirmed: Mapping[str, Any] = field(default_factory=dict)


_TERMS: ContextVar[Terms | None] = ContextVar("terms", default=None)


def outer_terms(own: Terms) -> Terms:
    """The terms of the network within which another is built, else that one's own."""
    return _TERMS.get() or own


def build_on_terms(architecture: Architecture, spec: ModelSpec, terms: Terms) -> nn.Module:
    """Build a network; raises SmoothctlError as soon as it outgrows the tensors that the file holds."""
    if _TERMS.get() is not None or terms.held is None:
        with _within(terms):
            return architecture.build(spec)
    with _within(terms), _bounded(terms.held):
        if any(isinstance(value, int | float | list | tuple | Mapping) for value in spec.options.values()):
            # First without memory, as a value may be made before anything counts it.
            with suppress_all_but_ours(), torch.device("meta"):
                architecture.build(spec)
    with _within(terms), _bounded(terms.held):
        return architecture.build(spec)


@contextmanager
def suppress_all_but_ours() -> Iterator[None]:
    """Let only our own errors through: many networks cannot be built without memory, for reasons of their own."""
    try:
        yield
    except SmoothctlError:
        raise
    except Exception:
        return


@contextmanager
def _within(terms: Terms) -> Iterator[None]:
    token = _TERMS.set(terms)
    try:
        yield
    finally:
        _TERMS.reset(token)


@contextmanager
def _bounded(held: Mapping[str, Tensor]) -> Iterator[None]:
    """Count what modules register meanwhile; raise SmoothctlError when it is beyond what a file's tensors need."""
    values = SPARE_VALUES + TIMES_VALUES * sum(_stored(value) for value in held.values())
    modules = SPARE_MODULES + TIMES_MODULES * len(held)

    def count_values(_: nn.Module, name: str, value: Tensor | None) -> None:
        nonlocal values
        # A lazy layer has no values before it has seen an image.
        values -= 0 if value is None or is_lazy(value) else value.numel()
        if values < 0:
            raise SmoothctlError(f"the file's settings ask for a network far larger than its {len(held)} tensors")

    def count_modules(_: nn.Module, name: str, child: nn.Module | None) -> None:
        nonlocal modules
        modules -= 1
        if modules < 0:
            raise SmoothctlError(f"the file's settings ask for far more layers than its {len(held)} tensors")

    with ExitStack() as stack:
        for handle in (
            hooks.register_module_parameter_registration_hook(count_values),
            hooks.register_module_buffer_registration_hook(count_values),
            hooks.register_module_module_registration_hook(count_modules),
        ):
            stack.callback(handle.remove)
        yield


def _stored(value: Tensor) -> int:
    """The values that are really there: a tensor may show one value many times."""
    with suppress(RuntimeError, NotImplementedError):
        return min(value.numel(), value.untyped_storage().nbytes() // value.element_size())
    return value.numel()


def check_file_options(architecture: Architecture, arch: str, options: Mapping[str, Any], terms: Terms) -> None:
    """Raise UsageError unless options that come from a file are plain settings, or repeated by the user."""
    if terms.held is None:
        return
    allowed = architecture.options if architecture.options is not None else architecture.file_options
    for name, value in options.items():
        if name in architecture.initial_options or (name in terms.confirmed and terms.confirmed[name] == value):
            continue
        if not _is_plain(value):
            raise UsageError(
                f"the file sets the option {name!r} of {arch} to what is no plain setting ({str(value)[:60]!r}); names "
                "of files, addresses and code are not taken from files"
            )
        if allowed is not None and name not in allowed:
            raise UsageError(
                f"the file sets the option {name!r} of {arch}, which is not taken from files; if you trust it, say "
                f"`arch_options={name}={value}` yourself"
            )


def _is_plain(value: Any) -> bool:
    """Numbers, truth values, None, single words, and lists and tables of these."""
    if isinstance(value, str):
        return bool(WORD.fullmatch(value)) or _is_number(value)
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(key) and _is_plain(part) for key, part in value.items())
    return value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
