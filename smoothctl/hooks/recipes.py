"""Settings of a training run, and recipes: those that a paper or a dataset recommends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from smoothctl.base.settings import Count, Index, Indices, Option, Pairs, Positive, Settings
from smoothctl.hooks.defaults import ARCHITECTURE

TrainingPrecision = Literal["fp32", "tf32", "bf16", "fp16"]
OPTIMIZER, MODEL, RUNNING = "Optimizer", "Network", "Running"


class TrainingFields(Settings):
    """Everything of a training run that a recipe may set and a user may override."""

    arch: Annotated[str, Option("Architecture.", default="the recipe's")] = ARCHITECTURE
    sigma: Annotated[Positive, Option("Scale of the noise, in units of pixels in [0,1]; above 0.")] = 0.25
    epochs: Annotated[Count, Option("Passes over the training images.", default="the recipe's")] = 90
    batch_size: Annotated[
        Count,
        Option("Images of one optimizer step, over all processes.", default="the recipe's, or 128", panel=OPTIMIZER),
    ] = 128
    lr: Annotated[
        Positive, Option("Learning rate before it drops.", default="the recipe's, or 0.1", panel=OPTIMIZER)
    ] = 0.1
    optimizer: Annotated[str, Option("sgd, adamw, or any other name that timm knows.", panel=OPTIMIZER)] = "sgd"
    momentum: Annotated[float, Field(ge=0, lt=1), Option("Momentum of SGD.", panel=OPTIMIZER)] = 0.9
    nesterov: Annotated[
        bool, Option("Nesterov's form of momentum.", ("--nesterov/--no-nesterov",), panel=OPTIMIZER)
    ] = False
    weight_decay: Annotated[float, Field(ge=0), Option("Weight decay, on all parameters.", panel=OPTIMIZER)] = 1e-4
    schedule: Annotated[
        Literal["multistep", "cosine", "constant"],
        Option("Of the learning rate: multistep, cosine or constant.", panel=OPTIMIZER),
    ] = "multistep"
    milestones: Annotated[
        Indices | None,
        Option(
            "Epochs, from 0, at whose start the learning rate drops.",
            metavar="A,B,...", default="1/2, 3/4", panel=OPTIMIZER,
        ),
    ] = None  # fmt: skip
    gamma: Annotated[Positive, Option("Factor of each drop of the learning rate.", panel=OPTIMIZER)] = 0.1
    warmup_epochs: Annotated[Index, Option("Epochs in which the learning rate grows from zero.", panel=OPTIMIZER)] = 0
    clip: Annotated[Positive | None, Option("Largest norm of the gradient.", panel=OPTIMIZER)] = None
    ema: Annotated[
        Annotated[float, Field(gt=0, lt=1)] | None,
        Option("Keep an average of the weights with this decay, such as 0.999, as the model.", panel=OPTIMIZER),
    ] = None
    lr_layers: Annotated[
        Annotated[float, Field(ge=0, le=1)],
        Option("Factor of the learning rate for all layers but the last.", metavar="F", panel="Weights to start from"),
    ] = 1.0
    precision: Annotated[
        TrainingPrecision | Literal["auto"],
        Option(
            "Of the network: fp32, tf32, bf16 or fp16 (autocast), or auto, the fastest here, as measured.",
            panel=RUNNING,
        ),
    ] = "fp32"
    augment: Annotated[
        bool, Option("The dataset's augmentation, if it has one.", ("--augment/--no-augment",), panel="Images")
    ] = True
    balanced: Annotated[
        bool,
        Option(
            "Draw each class equally often in an epoch, for classes with unlike numbers of images.",
            ("--balanced/--no-balanced",), panel="Images",
        ),
    ] = False  # fmt: skip
    options: Annotated[
        Pairs,
        Option(
            "Option of the method; `smoothctl plugins METHOD` lists them.",
            ("--option", "-o"), metavar="NAME=VALUE", repeated=True,
        ),
    ] = Field(default_factory=dict)  # fmt: skip


class Recipe:
    """Recommended settings of a training run; what is left out is left to the dataset's recipe or the defaults.

    A method lists its recipes; a dataset has one of its own. Of several for one ``dataset`` and sigma the
    first is used, and ``name`` is how ``--recipe`` asks for another, or for one without a dataset, which
    serves any. ``source`` says where the numbers come from. ``by_arch`` holds what is different for
    an architecture, such as ``{"vit": {"lr": 0.01}}``. The others are :class:`TrainingFields`. Raises ValueError
    for a setting that there is not.
    """

    def __init__(
        self,
        dataset: str | None = None,
        source: str = "",
        name: str = "",
        by_arch: Mapping[str, Mapping[str, Any]] | None = None,
        **settings: Any,
    ):
        self.dataset, self.source, self.name = dataset, source, name
        self.settings = _checked(settings)
        self.by_arch = {arch: _checked(changes) for arch, changes in (by_arch or {}).items()}

    @property
    def sigma(self) -> float | None:
        """The scale of the noise that it is for, if it says so."""
        return self.settings.get("sigma")

    @property
    def options(self) -> Mapping[str, Any]:
        """The method's own options."""
        options: Mapping[str, Any] = self.settings.get("options", {})
        return options

    def replace(self, dataset: str | None = None, source: str = "", **settings: Any) -> Recipe:
        """The same recipe with other settings, for another dataset or from another source where these are given."""
        merged = {**self.settings, **settings}
        return Recipe(dataset or self.dataset, source or self.source, self.name, self.by_arch, **merged)

    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        named = {"name": self.name, "dataset": self.dataset, **self.settings, "by_arch": self.by_arch}
        return {**{key: value for key, value in named.items() if value not in ("", {})}, "source": self.source}


def _checked(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return TrainingFields(**settings).given()
    except ValidationError as error:
        raise ValueError(f"a recipe's {' '.join(str(error).split())}") from None
