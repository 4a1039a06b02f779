"""Starting from weights: a network takes those of another, and how fast its layers learn then."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

from smoothctl.base import console
from smoothctl.base.errors import UsageError
from smoothctl.models.checkpoint import Model, load_model
from smoothctl.models.classifier import BaseClassifier
from smoothctl.models.import_checkpoint import Assumptions
from smoothctl.models.user_module import is_own


def load_initial(path: Path, arch: str | None, normalize: str | None) -> Model:
    """The model whose weights are the first ones; ``arch`` and ``normalize`` are for a file that does not say them.

    One of ours says them, and they are those of the new run; but the user's own code is run only if it is named.
    """
    code = arch if arch is not None and is_own(arch) else None
    return load_model(path, given=Assumptions(arch=arch, normalize=normalize), given_of_ours=Assumptions(arch=code))


def check_initial(init: Model, arch: str) -> None:
    """Raise UsageError unless a model can lend its weights to an architecture: its own, and finite."""
    if init.info.arch != arch:
        raise UsageError(f"`init={init.path}` is {init.info.arch}, which cannot start {arch}; leave `arch` out")
    if not all(torch.isfinite(value).all() for value in init.classifier.state_dict().values()):
        raise UsageError(f"`init={init.path}` has weights that are not finite")


def start_from(model: BaseClassifier, init: Model, classes: int) -> list[str]:
    """Give a model the weights of another of its architecture; returns the names of those that stay fresh.

    They are those of the last layer where the number of classes is another. Raises UsageError if anything else
    does not fit.
    """
    own, given = model.network.state_dict(), dict(init.classifier.network.state_dict())
    fresh = [name for name in own if name in given and own[name].shape != given[name].shape]
    before = len(init.info.class_names)
    for name in fresh:
        heads = own[name].shape[:1] == (classes,) and given[name].shape[:1] == (before,)
        if not heads or own[name].shape[1:] != given[name].shape[1:]:
            raise UsageError(
                f"`init={init.path}` does not fit: {name} is {tuple(given[name].shape)} there and "
                f"{tuple(own[name].shape)} here"
            )
        given[name] = own[name]
    if missing := sorted(set(own) ^ set(given)):
        raise UsageError(f"`init={init.path}` does not fit: {missing[0]} is only in one of the two")
    model.network.load_state_dict(given)
    return fresh


def tell_initial(init: Model, fresh: Iterable[str]) -> None:
    """Say where the weights come from, and what of them was replaced."""
    replaced = ", ".join(fresh)
    console.note(
        f"starting from {init.path} ({init.info.arch}, trained by {init.info.method})"
        + (f"; its head is for {len(init.info.class_names)} classes and was replaced ({replaced})" if replaced else "")
    )


def find_head(network: nn.Module, classes: int) -> nn.Module:
    """The last layer with a row of weights for each class; raises UsageError if there is none."""
    heads = [
        module
        for module in network.modules()
        if isinstance(weight := getattr(module, "weight", None), nn.Parameter) and len(weight) == classes
    ]
    if not heads:
        raise UsageError("`lr_layers` and `freeze` need a network whose last layer has a row of weights for each class")
    return heads[-1]


def split_parameters(network: nn.Module, classes: int) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The parameters of the layers before the last, and those of the last."""
    head = list(find_head(network, classes).parameters())
    ids = {id(parameter) for parameter in head}
    return [parameter for parameter in network.parameters() if id(parameter) not in ids], head


def set_training(model: BaseClassifier, frozen: bool, classes: int) -> None:
    """Train mode; where all but the head is frozen, that stays as it is, its statistics too."""
    model.train()
    if frozen:
        model.eval()
        find_head(model.network, classes).train()
