"""Networks under a name, models made of models, and layouts of third-party checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class ModelSpec:
    """What an architecture is asked to build: ``name`` is the canonical name, or for a family what follows
    its slash; ``input_shape`` is (C,H,W); ``options`` are the user's ``--arch-option`` values, with
    numbers, true, false and none read as such; ``mean`` and ``std`` are the dataset's, for an
    architecture that normalises by itself."""

    name: str
    num_classes: int
    input_shape: tuple[int, int, int]
    options: Mapping[str, Any] = field(default_factory=dict)
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


@dataclass(frozen=True)
class Trained:
    """A trained network as plain data: its architecture, options and weights, and the sigma that it is for
    (0: without noise, None: unknown). The weights hold the constants of its normalising layer, ``normalize.mean``
    and ``normalize.std``.

    Of one that a family composed, ``files`` are those that it was made from besides models, and ``note``
    says what was chosen.
    """

    arch: str
    options: Mapping[str, Any]
    state: Mapping[str, Tensor]
    input_shape: tuple[int, int, int]
    sigma: float | None = None
    files: tuple[Path, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Architecture:
    """A network under a name. ``build(spec)`` makes a module from images [B,C,H,W], already
    normalised by the engine's first layer, to logits [B,classes].

    ``options`` says what ``--arch-option`` takes (None: whatever the family takes); those in
    ``initial_options`` only choose the first weights and are left out when weights come from a
    file. Where ``options`` is None, ``file_options`` are those that a model file may set (None: any, as what the
    family passes on is checked there). ``dataset`` is what the published files of this name were trained on. An
    architecture that ``normalizes`` is given pixels. ``example`` is a small member of a family; one without can
    only be made from files.

    A family may make models of models: ``average(members, options)`` of several, ``denoise(classifier, path,
    sigma)`` with a denoiser of its kind, read from ``path``, in front (None: the path is of
    another kind; ``sigma`` is that of the noise, if it is known). Members of such a family keep
    each network behind its own normalising layer.
    """

    name: str
    build: Callable[[ModelSpec], nn.Module]
    summary: str = ""
    aliases: tuple[str, ...] = ()
    options: Mapping[str, str] | None = field(default_factory=dict)
    initial_options: tuple[str, ...] = ()
    file_options: tuple[str, ...] | None = ()
    dataset: str | None = None
    normalizes: bool = False
    example: str = ""
    average: Callable[[Sequence[Trained], Mapping[str, Any]], Trained] | None = None
    denoise: Callable[[Trained, Path, float | None], Trained | None] | None = None


@dataclass(frozen=True)
class Imported:
    """What an importer found in a stranger's file: the weights, and what the file says of them (None: nothing).

    ``where`` names the place in the file, for messages.
    """

    state: Mapping[str, Tensor]
    where: str
    arch: str | None = None
    epochs: int | None = None
    sigma: float | None = None


@dataclass(frozen=True)
class Importer:
    """A layout of other people's checkpoints. ``read(content)`` gives what it finds in the plain data
    and tensors of a file, or None if the file has another layout."""

    name: str
    read: Callable[[Any], Imported | None]
    summary: str = ""
    aliases: tuple[str, ...] = ()
