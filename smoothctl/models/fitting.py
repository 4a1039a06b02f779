"""Which architecture, and which dataset's classes and image size, a third-party state dict fits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.networks import Imported
from smoothctl.hooks.registry import Registered, Source, registry
from smoothctl.images.datasets import describe_dataset
from smoothctl.models.classifier import build_classifier, canonical_arch, find_architecture, sketch_network
from smoothctl.models.safe_loading import COUNTER, count_matches, is_counter, misfits
from smoothctl.models.unwrapping import Weights, unwrap

Shape = tuple[int, int, int]
Options = Mapping[str, Any]
NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Fitted:
    """Weights that fit an architecture whole, and ``why`` it was tried; ``published`` is the dataset of its files."""

    arch: str
    weights: Weights
    dataset: Dataset
    input_shape: Shape
    why: str
    published: Dataset | None


class OtherClasses(UsageError):
    """The weights fit an architecture, but for other classes than the dataset's."""


@dataclass(frozen=True)
class _Search:
    """What is known of a file: its weights in their variants, and what the user said."""

    file: Path
    variants: Sequence[Weights]
    options: Options
    dataset: Dataset | None
    size: int | None
    normalize_given: bool

    def home(self, entry: Registered) -> Dataset | None:
        """The dataset whose classes an architecture's weights are taken to have, if one is known."""
        return describe_dataset(self.dataset) if self.dataset is not None else _published(entry)

    def shape(self, entry: Registered, dataset: Dataset) -> Shape:
        """The shape of the images. Raises UsageError where only the user can know it."""
        published = _published(entry)
        own = dataset.shape or (published.shape if published else ())
        if not own:
            raise UsageError(f"the size of {dataset.name} images comes from its files: give `dataset` and `data`")
        if self.size is not None:
            return own[0], self.size, self.size
        # Images that are scaled by convention can be meant at either size; the weights rarely tell.
        if published is not None and published.shape and dataset.resize is not None and own != published.shape:
            raise UsageError(
                f"{self.file} can be meant for images of {_square(published.shape)}, as {entry.name}'s published files "
                f"are, or of {_square(own)}, as {dataset.name} is usually taken; give `size={published.shape[1]}` or "
                f"`size={own[1]}`{self.also()}"
            )
        return own

    def also(self) -> str:
        """What else must be said of this file, so that one message names all of it."""
        unknown = any(weights.wrapped and weights.constants is None for weights in self.variants)
        return ", and `normalize` for its first layer" if unknown and not self.normalize_given else ""


def choose_architecture(
    file: Path, imported: Imported, arch: str | None, options: Options, dataset: Dataset | None, size: int | None,
    normalize_given: bool,
) -> Fitted:  # fmt: skip
    """The architecture that was given, or named by the file, or that alone has weights of these names and shapes.

    Raises SmoothctlError or UsageError that says what does not fit, or all that has to be said.
    """
    search = _Search(file, unwrap(imported.state), options, dataset, size, normalize_given)
    if arch is not None:
        return _fit(search, arch, "given")
    problem: SmoothctlError | None = None
    if imported.arch is not None and _is_known(imported.arch):
        try:
            return _fit(search, imported.arch, f"the file says {imported.arch!r}", named_by_file=True)
        except OtherClasses:
            raise
        except SmoothctlError as error:
            problem = error
    matches = list(_recognise_shapes(search)) or list(_try_families(search, imported.arch))
    if len(matches) == 1:
        return _fit(search, matches[0], "its weights have these names and shapes")
    if problem is not None and not matches:
        raise problem
    said = f"says arch {imported.arch!r}, which fits no architecture here" if imported.arch else "names no architecture"
    which = f"several fit: {', '.join(matches)}" if matches else "none has weights like these"
    families = [entry.name + "NAME" for entry in registry().all("architecture") if _is_library(entry)]
    raise UsageError(
        f"{file} {said}, and of those registered {which}; give `arch=NAME`, such as {', '.join(families)} or "
        f"FILE.py:FUNCTION, and `dataset` if its classes are not those that NAME was published for{search.also()}"
    )


def _fit(search: _Search, arch: str, why: str, named_by_file: bool = False) -> Fitted:
    """Build one architecture; take the weights that fit it whole. Raises SmoothctlError that lists what does not.

    One that the file names may be no larger than its tensors.
    """
    entry = find_architecture(arch)
    dataset = search.home(entry)
    if dataset is None:
        raise UsageError(f"{search.file} does not say what its classes are; give `dataset`{search.also()}")
    shape, classes = search.shape(entry, dataset), len(dataset.class_names)
    if not classes:
        raise UsageError(f"the class names of {dataset.name} come from its files: give `dataset` and `data`")
    held = search.variants[0].state if named_by_file else None
    own = build_classifier(
        arch, classes, shape, search.options, held=held, confirmed=search.options
    ).network.state_dict()
    for weights in search.variants:
        if not misfits(own, weights.state):
            return Fitted(canonical_arch(arch), weights, dataset, shape, why, _published(entry))
    nearest = max(search.variants, key=lambda weights: count_matches(own, weights.state))
    if found := _count_classes(own, _more_classes(arch, classes, shape, search.options), classes, nearest.state):
        _refuse_classes(search, arch, dataset, found)
    problem = misfits(own, nearest.state)
    raise SmoothctlError(f"{search.file} does not fit architecture {arch} for {dataset.name}: {problem}")


def _refuse_classes(search: _Search, arch: str, dataset: Dataset, found: int) -> None:
    size = f" and `size` (of {arch}'s published files: {dataset.shape[1]})" if dataset.shape else ""
    advice = "another `dataset`" if search.dataset else f"`dataset`, if its images are of other sizes{size}"
    raise OtherClasses(
        f"{search.file} has {found} classes, dataset {dataset.name} has {len(dataset.class_names)}; give "
        f"{advice}{search.also()}"
    )


def _more_classes(arch: str, classes: int, shape: Shape, options: Options) -> Mapping[str, Tensor]:
    try:
        return build_classifier(arch, classes + 1, shape, options).network.state_dict()
    except UsageError:  # a network of the user's own may have a fixed number
        return {}


def _count_classes(
    own: Mapping[str, Tensor], more: Mapping[str, Tensor], classes: int, state: Mapping[str, Tensor]
) -> int | None:
    """The classes that weights are for, which fit but for their number; None if they do not fit.

    A head's tensors, of whatever kind, are those that change (``own`` to ``more``) with one class more.
    """
    found = set()
    for key, value in own.items():
        if key not in state or key not in more:
            if key.endswith(COUNTER):
                continue
            return None
        if state[key].shape == value.shape == more[key].shape:
            continue
        wide = [
            at for at, side in enumerate(value.shape) if more[key].ndim == value.ndim and more[key].shape[at] != side
        ]
        if len(wide) != 1 or state[key].ndim != value.ndim:
            return None
        (at,) = wide
        if state[key].shape[:at] + state[key].shape[at + 1 :] != value.shape[:at] + value.shape[at + 1 :]:
            return None
        found.add(classes + (state[key].shape[at] - value.shape[at]) // (more[key].shape[at] - value.shape[at]))
    if len(found) != 1 or any(key not in own and not is_counter(key) for key in state):
        return None
    return found.pop()


def _recognise_shapes(search: _Search) -> Iterator[str]:
    """Every registered architecture whose state dict has exactly these names and, but for classes, shapes."""
    for entry in registry().all("architecture"):
        dataset = None if entry.name.endswith("/") else search.home(entry)
        if dataset is None or not dataset.class_names:
            continue
        try:
            shape = search.shape(entry, dataset)
        except UsageError:  # whichever size: names and shapes hardly depend on it
            shape = dataset.shape or (3, 32, 32)
        classes = len(dataset.class_names)
        own = _sketch(entry.name, entry.source, classes, shape)
        if own is None:
            continue
        for weights in search.variants:
            if not misfits(own, weights.state) or (
                _names(own) == _names(weights.state)
                and _count_classes(
                    own, _sketch(entry.name, entry.source, classes + 1, shape) or {}, classes, weights.state
                )
            ):
                yield entry.name
                break


def _names(state: Mapping[str, Tensor]) -> set[str]:
    return {key for key in state if not is_counter(key)}


def _try_families(search: _Search, arch: str | None) -> Iterator[str]:
    """The libraries' networks of the name that a file gives, as far as its weights fit them."""
    if arch is None or not NAME.fullmatch(arch):
        return
    for entry in registry().all("architecture"):
        if _is_library(entry):
            try:
                _fit(search, entry.name + arch, "", named_by_file=True)
            except OtherClasses:
                yield entry.name + arch
            except SmoothctlError:
                continue
            else:
                yield entry.name + arch


def _is_library(entry: Registered) -> bool:
    """Whether a family's members are networks with published files, and not made of others."""
    return entry.name.endswith("/") and entry.value.dataset is not None


@cache
def _sketch(name: str, source: Source, classes: int, shape: Shape) -> Mapping[str, Tensor] | None:
    """Names and shapes of an architecture's weights; ``source`` tells plugins of one name apart."""
    network = sketch_network(registry().find("architecture", name), classes, shape)
    return None if network is None else network.state_dict()


def _published(entry: Registered) -> Dataset | None:
    name = entry.value.dataset
    return describe_dataset(registry().find("dataset", name).value) if name else None


def _is_known(arch: str) -> bool:
    try:
        return bool(registry().find("architecture", arch))
    except UsageError:
        return False


def _square(shape: Shape) -> str:
    return f"{shape[1]}x{shape[2]}"
