"""Checkpoints that other code wrote: finding the weights, the architecture, the classes and the input layer.

Nothing is guessed in silence: what the file does not say is taken from the user, from a stated
rule, or asked for, and everything assumed is said on stderr. docs/models.md lists the rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smoothctl.base import console
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.networks import Imported
from smoothctl.hooks.registry import Source, registry
from smoothctl.images.datasets import describe_dataset
from smoothctl.models.classifier import build_classifier, canonical_arch, find_architecture, sketch_network
from smoothctl.models.normalization import Constants, describe, of_dataset, read_normalize, what_is_wrong
from smoothctl.models.safe_loading import misfits, read_content

WRAPPERS = ("module", "_orig_mod")
MEANS = ("mean", "means", "mu")
DEVIATIONS = ("std", "stds", "sd", "sds", "sigma")


@dataclass(frozen=True)
class Assumptions:
    """What the user says of a file that does not say it itself."""

    arch: str | None = None
    arch_options: Mapping[str, Any] = field(default_factory=dict)
    dataset: Dataset | None = None
    normalize: str | None = None
    sigma: float | None = None
    noise: str | None = None
    state_key: str | None = None


@dataclass(frozen=True)
class Weights:
    """A state dict without its wrappers. ``wrapped``: it was the second layer of a Sequential, behind a
    first layer that normalises; ``constants`` are those that the first layer kept."""

    state: dict[str, Tensor]
    wrapped: bool = False
    constants: Constants | None = None


@dataclass(frozen=True)
class Recognised:
    """All that is needed to use a stranger's file."""

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
    arch, dataset, weights, why = _choose_arch(file, imported, given)
    shape, names = _shape(dataset), dataset.class_names
    classes = _count_classes(weights.state)
    if not names:
        raise UsageError(f"the class names of {dataset.name} come from its files: give --dataset and --data")
    if classes != len(names):
        advice = "" if given.dataset else "; give --dataset"
        raise UsageError(f"{file} has {classes} classes, dataset {dataset.name} has {len(names)}{advice}")
    (mean, std), because = _input_layer(file, weights, dataset, given.normalize, shape[0])
    sigma = given.sigma if given.sigma is not None else imported.sigma
    console.note(
        f"{file} is not smoothctl's own; its weights ({imported.where}) are taken as {arch} ({why}), classes of "
        f"{dataset.name} ({'given' if given.dataset else 'where this architecture was published; else --dataset'}), "
        f"input layer {describe(mean, std)} ({because}), sigma {'unknown' if sigma is None else f'{sigma:g}'}"
    )
    return Recognised(arch, weights, dataset, shape, mean, std, sigma, imported.epochs)


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
    return dataclasses.replace(found, state=next(unwrap(found.state)).state)


def _descend(file: Path, content: Any, state_key: str) -> Any:
    for part in state_key.split("."):
        if not isinstance(content, dict) or part not in content:
            raise UsageError(f"--state-key {state_key}: {file} has no {part!r} ({_shown(content)})")
        content = content[part]
    return content


def _shown(content: Any) -> str:
    """Say in a few words what a file holds."""
    if not isinstance(content, dict):
        return f"found a {_kind(content)}"
    parts = [f"{key}: {_kind(value)}" for key, value in list(content.items())[:8]]
    hint = "; choose one with --state-key" if any(isinstance(value, dict) for value in content.values()) else ""
    return f"found top-level keys: {', '.join(parts)}{hint}" if parts else "found an empty dictionary"


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"list of {len(value)}"
    return "tensor" if isinstance(value, Tensor) else type(value).__name__


def _choose_arch(file: Path, imported: Imported, given: Assumptions) -> tuple[str, Dataset, Weights, str]:
    """The architecture that was given, or named by the file, or that alone has weights of these names and shapes."""
    variants = list(unwrap(imported.state))
    if given.arch is not None:
        found = _fit(file, given.arch, variants, given)
        return (*found, "given")
    problem: SmoothctlError | None = None
    if imported.arch is not None and _is_known(imported.arch):
        try:
            return (*_fit(file, imported.arch, variants, given), f"the file says {imported.arch!r}")
        except SmoothctlError as error:
            problem = error
    matches = list(_recognise_shapes(variants, given))
    if len(matches) == 1:
        return (*matches[0], "its weights have these names and shapes")
    if problem is not None and not matches:
        raise problem
    said = f"says arch {imported.arch!r}, which fits no architecture here" if imported.arch else "names no architecture"
    which = "several fit: " + ", ".join(match[0] for match in matches) if matches else "none has weights like these"
    raise UsageError(f"{file} {said}, and of those registered {which}; give --arch NAME")


def _is_known(arch: str) -> bool:
    try:
        return bool(registry().find("architecture", arch))
    except UsageError:
        return False


def _fit(file: Path, arch: str, variants: list[Weights], given: Assumptions) -> tuple[str, Dataset, Weights]:
    """Build one architecture; take the weights that fit it whole. Raises SmoothctlError that lists what does not."""
    dataset = _dataset_of(arch, given)
    if dataset is None:
        raise UsageError(f"{file} does not say what it was trained on; give --dataset")
    classes = _count_classes(variants[0].state)
    own = build_classifier(arch, classes, _shape(dataset), given.arch_options).network.state_dict()
    problems = [misfits(own, weights.state) for weights in variants]
    if "" not in problems:
        raise SmoothctlError(f"{file} does not fit architecture {arch} for {dataset.name}: {problems[0]}")
    return canonical_arch(arch), dataset, variants[problems.index("")]


def _recognise_shapes(variants: list[Weights], given: Assumptions) -> Iterator[tuple[str, Dataset, Weights]]:
    """Every registered architecture whose state dict has exactly these names and shapes."""
    classes = _count_classes(variants[0].state)
    for entry in registry().all("architecture"):
        dataset = None if entry.name.endswith("/") else _dataset_of(entry.name, given)
        if dataset is None:
            continue
        own = _sketch(entry.name, entry.source, classes, _shape(dataset))
        if own is None:
            continue
        for weights in variants:
            if not misfits(own, weights.state):
                yield entry.name, dataset, weights
                break


@cache
def _sketch(name: str, source: Source, classes: int, shape: tuple[int, int, int]) -> Mapping[str, Tensor] | None:
    """Names and shapes of an architecture's weights; ``source`` tells plugins of one name apart."""
    network = sketch_network(registry().find("architecture", name), classes, shape)
    return None if network is None else network.state_dict()


def _dataset_of(arch: str, given: Assumptions) -> Dataset | None:
    if given.dataset is not None:
        return describe_dataset(given.dataset)
    published = find_architecture(arch).value.dataset
    return describe_dataset(registry().find("dataset", published).value) if published else None


def _shape(dataset: Dataset) -> tuple[int, int, int]:
    if not dataset.shape:
        raise UsageError(f"the shape of {dataset.name} images comes from its files: give --dataset and --data")
    return dataset.shape


def unwrap(state: Mapping[str, Tensor]) -> Iterator[Weights]:
    """The weights without ``module.`` and ``_orig_mod.``, and first without a Sequential around, if there is one."""
    plain = {".".join(part for part in key.split(".") if part not in WRAPPERS): value for key, value in state.items()}
    if len(plain) != len(state):
        plain = dict(state)
    first = {key[2:]: value for key, value in plain.items() if key.startswith("0.")}
    second = {key[2:]: value for key, value in plain.items() if key.startswith("1.")}
    if second and len(first) + len(second) == len(plain) and set(first) <= {*MEANS, *DEVIATIONS}:
        yield Weights(second, wrapped=True, constants=_constants(first))
    yield Weights(plain)


def _constants(first: Mapping[str, Tensor]) -> Constants | None:
    mean = next((first[name] for name in MEANS if name in first), None)
    if mean is None:
        return None
    std = next((first[name] for name in DEVIATIONS if name in first), torch.ones_like(mean))
    return tuple(mean.flatten().tolist()), tuple(std.flatten().tolist())


def _count_classes(state: Mapping[str, Tensor]) -> int:
    """The rows of the last matrix: every classifier ends in a linear layer."""
    rows = [len(value) for key, value in state.items() if value.ndim == 2 and key.endswith("weight")]
    return rows[-1] if rows else 0


def _input_layer(
    file: Path, weights: Weights, dataset: Dataset, normalize: str | None, channels: int
) -> tuple[Constants, str]:
    """The constants of the layer in front of the network, and by which rule."""
    if normalize is not None:
        return read_normalize(normalize, dataset, channels), "given by --normalize"
    if weights.constants is not None and len(weights.constants[0]) in (1, channels):
        mean, std = weights.constants
        if (wrong := what_is_wrong(mean, std)) is not None:
            raise UsageError(f"{file} keeps an input layer that cannot be: {wrong}; give --normalize")
        return (mean * (channels // len(mean)), std * (channels // len(std))), "kept in the file"
    if weights.wrapped:
        return of_dataset(dataset, channels), f"the network stands behind a first layer: that of {dataset.name}"
    none = (0.0,) * channels, (1.0,) * channels
    return none, "assumed, as the file has no first layer; else --normalize"
