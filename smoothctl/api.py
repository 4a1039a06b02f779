"""What plugins return and what they are given: the public data types.

Nothing here imports torch when it is loaded, so that a plugin can be described without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

    from smoothctl.draws import Draws


ABSTAIN = -1
"""What stands in the place of a class when the smoothed classifier abstains."""


class LabelledImages(Protocol):
    """A split of a dataset: anything with a length that gives ``(image, label)`` for an index.

    An image is a PIL image, an array [H,W] or [H,W,C] (uint8, or float in [0,1]), or a float tensor
    [C,H,W] in [0,1]. A source may also have ``image_id(index) -> str``, a name that outlives
    re-ordering, such as a relative path, and ``class_names``, if the dataset leaves them open.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> tuple[Any, int]: ...


@dataclass(frozen=True)
class ArrayImages:
    """Images that fit in memory: uint8, or float in [0,1], [N,H,W] or [N,H,W,C], with int64 labels [N].

    ``class_names`` is for a dataset whose names are known once it is opened.
    """

    images: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int, /) -> tuple[np.ndarray, int]:
        return self.images[index], int(self.labels[index])


@dataclass(frozen=True)
class Recipe:
    """Settings of a training run. What is None is left to the dataset's recipe or the defaults.

    A method lists published recipes; a dataset has one of its own. ``source`` says where the
    numbers come from. ``batch_size`` counts images of one optimiser step; ``milestones`` are the
    epochs (counted from 0) at whose start the learning rate is multiplied by ``gamma``.
    """

    dataset: str | None = None
    sigma: float | None = None
    arch: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    milestones: tuple[int, ...] | None = None
    gamma: float | None = None
    schedule: str | None = None
    warmup_epochs: int | None = None
    optimizer: str | None = None
    nesterov: bool | None = None
    clip: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class Dataset:
    """Labelled images under a name.

    ``load(split, data, download)`` gives one split, looking only below ``data`` (None: the
    dataset's own place), and downloads only if ``download`` is true. Missing files are a
    :class:`smoothctl.DatasetMissing`. ``augment(x, draws)`` changes a training batch
    [B,C,H,W] of pixels in [0,1].

    What is empty is known once the images are opened: ``class_names`` from the images' own
    ``class_names`` (or from ``find_class_names``, where that needs no files), ``shape`` from the
    model, ``--size`` or the first image, ``mean`` and ``std`` as 0.5. PIL images are brought to
    the shape by the engine: scaled so that the shorter side is ``resize`` for a crop of ``shape``
    (None: so that they just cover it), then cropped in the centre. Empty ``splits`` are those of the
    files. ``data_is_name``: ``data`` need not be a place.
    """

    name: str
    load: Callable[[str, Path | None, bool], LabelledImages]
    shape: tuple[int, int, int] | tuple[()] = ()
    class_names: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    summary: str = ""
    aliases: tuple[str, ...] = ()
    splits: tuple[str, ...] = ("train", "test")
    augment: Callable[[Tensor, Draws], Tensor] | None = None
    recipe: Recipe = field(default_factory=Recipe)
    resize: int | None = None
    find_class_names: Callable[[], tuple[str, ...]] | None = None
    data_is_name: bool = False


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
    file. ``dataset`` is what the published files of this name were trained on. An architecture
    that ``normalizes`` is given pixels. ``example`` is a small member of a family; one without can
    only be made from files.

    A family may make models of models: ``average(members)`` of several, ``denoise(classifier, path,
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
    dataset: str | None = None
    normalizes: bool = False
    example: str = ""
    average: Callable[[Sequence[Trained]], Trained] | None = None
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


@dataclass(frozen=True)
class Noise:
    """Additive noise with scale sigma, in units of pixels in [0,1].

    ``sample(shape, sigma, draws)`` draws a float32 tensor. ``radius(p_lower, sigma)`` is the radius
    in ``norm`` that the bound p_A >= p_lower >= 1/2 proves for the smoothed classifier;
    ``radius_pair(p_lower, runner_up, sigma)``, if there is one, what p_A >= p_lower and
    p_B <= runner_up <= p_lower for every other class B prove.
    """

    name: str
    sample: Callable[[tuple[int, ...], float, Draws], Tensor]
    radius: Callable[[float, float], float]
    norm: str = "l2"
    radius_pair: Callable[[float, float, float], float] | None = None
    summary: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Batch:
    """One optimiser step's images as a method sees them.

    x: clean images [B,C,H,W] in [0,1]; y: labels [B]; index: places in the dataset [B]; epoch:
    counted from 0, of ``epochs``; sigma: the scale of the noise; teacher: a frozen network from
    pixels to logits, or None. All random numbers come from the batch, so that a run can be repeated,
    and is the same whether one process has the batch or several share it.
    """

    x: Tensor
    y: Tensor
    index: Tensor
    epoch: int
    epochs: int
    sigma: float
    sample_noise: Callable[[tuple[int, ...]], Tensor]
    sample_uniform: Callable[[tuple[int, ...]], Tensor]
    teacher: Callable[[Tensor], Tensor] | None = None

    def noise(self, copies: int = 1) -> Tensor:
        """Draw fresh noise [copies*B,C,H,W], to be added to ``x.repeat(copies, 1, 1, 1)``."""
        return self.sample_noise((copies * self.x.shape[0], *self.x.shape[1:]))

    def uniform(self, copies: int = 1) -> Tensor:
        """Draw numbers between 0 and 1, one for each copy of each image: [copies*B]."""
        return self.sample_uniform((copies * self.x.shape[0],))

    def noisy(self, copies: int = 1) -> Tensor:
        """The images with fresh noise, never clipped: [copies*B,C,H,W], all images copy by copy."""
        return self.x.repeat(copies, 1, 1, 1) + self.noise(copies)


class Method(ABC):
    """A training objective. Subclasses set ``name``, may narrow ``Options``, and write ``loss``.

    ``smoothctl transfer`` serves methods that need a teacher and those that merely take one.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    needs_teacher: ClassVar[bool] = False
    takes_teacher: ClassVar[bool] = False
    recipes: ClassVar[Sequence[Recipe]] = ()

    class Options(BaseModel):
        """The method's own options, given as ``-o name=value``; descriptions are the help."""

        model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def __init__(self, options: Any = None):
        self.options: Any = self.Options() if options is None else options

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """The loss of one step, a mean over the batch's images, or (loss, parts to log)."""


@dataclass(frozen=True)
class Tracker:
    """Somewhere else to follow a training run, by ``--track NAME``.

    ``open(run)`` gives a context manager for one run directory; what it yields is called with each
    :class:`Event`. ``package`` is what must be installed for it.
    """

    name: str
    open: Callable[[Path], AbstractContextManager[Callable[[Event], None]]]
    package: str = ""
    summary: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Event:
    """Something that happened.

    ``kind`` is train.start, train.epoch, train.end, or certify and predict with .start, .image,
    .end; ``run`` is the run directory or log; ``data`` is plain values.
    """

    kind: str
    run: Path | None
    data: Mapping[str, Any]
