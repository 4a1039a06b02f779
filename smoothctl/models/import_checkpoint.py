"""Checkpoints that other code wrote: finding the weights, the architecture, the classes and the normalization layer.

Nothing is guessed in silence: what the file does not say is taken from the user, from a stated
rule, or asked for, and everything assumed is said on stderr. docs/models.md lists the rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from smoothctl.base import console
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.networks import Imported
from smoothctl.hooks.registry import registry
from smoothctl.models.classifier import find_architecture
from smoothctl.models.fitting import Fitted, choose_architecture
from smoothctl.models.normalization import Constants, describe, of_dataset, read_normalize, what_is_wrong
from smoothctl.models.safe_loading import is_counter, read_content
from smoothctl.models.settings import ModelSource
from smoothctl.models.unwrapping import Weights, without_wrappers


@dataclass(frozen=True)
class Assumptions:
    """What the user says of a file that does not say it itself."""

    arch: str | None = None
    arch_options: Mapping[str, Any] = field(default_factory=dict)
    dataset: Dataset | None = None
    size: int | None = None
    normalize: str | None = None
    sigma: float | None = None
    noise: str | None = None
    state_key: str | None = None


def assumptions(source: ModelSource, dataset: str | None = None, **more: Any) -> Assumptions:
    """What people said of a model file by a command's settings."""
    return Assumptions(
        arch=source.arch, arch_options=source.arch_options, normalize=source.normalize, state_key=source.state_key,
        size=source.size,
        dataset=None if dataset is None else registry().find("dataset", dataset).value, **more,
    )  # fmt: skip


@dataclass(frozen=True)
class Recognised:
    """All that is needed to use a third-party file."""

    arch: str
    weights: Weights
    dataset: Dataset
    input_shape: tuple[int, int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    sigma: float | None
    epochs: int | None


def recognise(file: Path, content: Any, given: Assumptions) -> Recognised:
    """Make sense of the content of a file that is not ours, and say what was assumed.

    Raises SmoothctlError or UsageError, in one line, for what cannot be read or must be said.
    """
    imported = find_weights(file, content, given.state_key)
    fitted = choose_architecture(
        file, imported, given.arch, given.arch_options, given.dataset, given.size, given.normalize is not None
    )
    dataset, weights, shape = fitted.dataset, fitted.weights, fitted.input_shape
    layer = _normalization(file, fitted, given, shape[0])
    sigma = given.sigma if given.sigma is not None else imported.sigma
    whose = "given" if given.dataset else "where this architecture was published; else `dataset`"
    console.note(
        f"{file} is not smoothctl's own; its weights ({imported.where}{_left_out(weights)}) are taken as {fitted.arch} "
        f"({fitted.why}), classes of {dataset.name} ({whose}), images of {shape[1]}x{shape[2]}, normalization layer "
        f"{describe(layer.mean, layer.std)} ({layer.because}), sigma {'unknown' if sigma is None else f'{sigma:g}'}"
    )
    if layer.assumed:
        console.warn(
            f"{file} does not say how its images were normalized, and another choice gives other outputs; assumed: "
            f"{layer.assumed}. The usual ones: `normalize=none`, `normalize={dataset.name}`, `normalize=center`"
        )
    return Recognised(fitted.arch, weights, dataset, shape, layer.mean, layer.std, sigma, imported.epochs)


def _left_out(weights: Weights) -> str:
    """Say which names were shortened and which counters ignored."""
    said = f", without {' '.join(f'{part}.' for part in weights.dropped)}" if weights.dropped else ""
    counters = sorted({key.rpartition(".")[2] for key in weights.state if is_counter(key)} - {"num_batches_tracked"})
    return said + (f", ignoring {', '.join(counters)}" if counters else "")


def find_weights(file: Path, content: Any, state_key: str | None) -> Imported:
    """What the first importer that knows the layout finds; raises SmoothctlError if none does."""
    if state_key is not None:
        content = _descend(file, content, state_key)
    for entry in registry().all("importer"):
        try:
            found: Imported | None = entry.value.read(content)
        except SmoothctlError as error:
            raise type(error)(f"{file}: {error}") from None
        if found is not None:
            return found
    raise SmoothctlError(f"{file} holds no state dict that can be loaded ({_shown(content)})")


def read_weights(file: Path) -> Imported:
    """The weights in a file of other code, without their wrappers. Raises SmoothctlError if there are none."""
    if not file.is_file():
        raise UsageError(f"there is no file {file}")
    found = find_weights(file, read_content(file), None)
    return dataclasses.replace(found, state=without_wrappers(found.state))


def _descend(file: Path, content: Any, state_key: str) -> Any:
    for part in state_key.split("."):
        if not isinstance(content, dict) or part not in content:
            raise UsageError(f"`state_key={state_key}`: {file} has no {part!r} ({_shown(content)})")
        content = content[part]
    return content


def _shown(content: Any) -> str:
    """Say in a few words what a file holds."""
    if not isinstance(content, dict):
        return f"found a {_kind(content)}"
    parts = [f"{key}: {_kind(value)}" for key, value in list(content.items())[:8]]
    hint = "; choose one with `state_key`" if any(isinstance(value, dict) for value in content.values()) else ""
    return f"found top-level keys: {', '.join(parts)}{hint}" if parts else "found an empty dictionary"


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"list of {len(value)}"
    return "tensor" if isinstance(value, Tensor) else type(value).__name__


@dataclass(frozen=True)
class _Layer:
    """A normalization layer, by which rule, and what of it is an assumption (empty: nothing)."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    because: str
    assumed: str = ""


def _normalization(file: Path, fitted: Fitted, given: Assumptions, channels: int) -> _Layer:
    """The layer in front of the network. Class names (``--dataset``) never decide it alone."""
    weights, dataset, published = fitted.weights, fitted.dataset, fitted.published
    none: Constants = (0.0,) * channels, (1.0,) * channels
    if given.normalize is not None:
        return _Layer(*read_normalize(given.normalize, dataset, channels), "given by `normalize`")
    if weights.constants is not None and len(weights.constants[0]) in (1, channels):
        mean, std = weights.constants
        if (wrong := what_is_wrong(mean, std)) is not None:
            raise UsageError(f"{file} keeps a normalization layer that cannot be: {wrong}; give `normalize`")
        return _Layer(mean * (channels // len(mean)), std * (channels // len(std)), "kept in the file")
    if find_architecture(fitted.arch).value.normalizes:
        return _Layer(*none, "the architecture has its own")
    if not weights.wrapped:
        return _Layer(*none, "the file has no first layer; else `normalize`", "none, pixels in [0,1] go straight in")
    constants = of_dataset(dataset, channels)
    if published is not None and len(published.mean) == channels and constants != of_dataset(published, channels):
        raise UsageError(
            f"{file} has a network behind a first layer that normalizes by constants that it does not keep, and "
            f"`dataset` says only what the classes are; give `normalize={published.name}`, `normalize={dataset.name}`, "
            "`normalize=center` or `normalize=MEAN,STD`"
        )
    because = f"the network stands behind a first layer: that of {dataset.name}"
    return _Layer(*constants, because, f"{dataset.name}'s mean and standard deviation")
