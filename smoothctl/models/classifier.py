"""Base classifiers: a normalising first layer and a network, from pixels in [0,1] to logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from smoothctl.base import console
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.networks import Architecture, ModelSpec
from smoothctl.hooks.registry import Registered, registry
from smoothctl.models import user_module
from smoothctl.models.file_limits import Terms, build_on_terms, check_file_options, outer_terms
from smoothctl.smoothing.outputs import describe_output, find_logits


class Normalize(nn.Module):
    """Subtract a mean and divide by a standard deviation per channel.

    It adds no keys to a state dict unless it is ``persistent``.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float], persistent: bool = False):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=persistent)
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1), persistent=persistent)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise [B,C,H,W]."""
        return (x - self.mean) / self.std


class BaseClassifier(nn.Module):
    """``network(normalize(x))``: what smoothing turns into a smoothed classifier."""

    def __init__(self, network: nn.Module, mean: Sequence[float], std: Sequence[float], persistent: bool = False):
        super().__init__()
        self.normalize = Normalize(mean, std, persistent)
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B,K] of pixels [B,C,H,W] in [0,1], noise included."""
        logits: Tensor = self.network(self.normalize(x))
        return logits


def build_classifier(
    arch: str,
    num_classes: int,
    input_shape: tuple[int, int, int],
    options: Mapping[str, Any] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    *,
    initial: bool = False,
    persistent: bool = False,
    held: Mapping[str, Tensor] | None = None,
    confirmed: Mapping[str, Any] | None = None,
) -> BaseClassifier:
    """Build an architecture behind its normalizing layer (None: pixels as they are).

    ``initial`` keeps the options that choose the first weights, such as pretrained ones; ``persistent``
    puts mean and std among the weights. Options that come from a file, which holds the tensors ``held``, may only be
    plain settings, unless ``confirmed`` by the user, and ask for no more than these tensors. Within another network,
    all this is as it is for that one. Raises UsageError, in one line, if the architecture cannot take these images
    or options.
    """
    channels = input_shape[0]
    entry = find_architecture(arch)
    terms = outer_terms(Terms(initial, held, confirmed or {}))
    means, stds = tuple(mean or (0.0,) * channels), tuple(std or (1.0,) * channels)
    kept = _check_options(entry.value, arch, options or {}, terms)
    spec = ModelSpec(member_name(entry, arch), num_classes, input_shape, kept, means, stds)
    network = _build(entry.value, arch, spec, terms)
    if entry.value.normalizes:
        means, stds = (0.0,) * channels, (1.0,) * channels
    return BaseClassifier(network, means, stds, persistent)


def sketch_network(entry: Registered, num_classes: int, input_shape: tuple[int, int, int]) -> nn.Module | None:
    """An architecture's network without memory for its weights, only to see their names and shapes.

    None if it cannot be built like this for these images.
    """
    zeros, ones = (0.0,) * input_shape[0], (1.0,) * input_shape[0]
    try:
        with torch.device("meta"):
            network: nn.Module = entry.value.build(ModelSpec(entry.name, num_classes, input_shape, {}, zeros, ones))
    except Exception:
        return None
    return network


def _build(architecture: Architecture, arch: str, spec: ModelSpec, terms: Terms) -> nn.Module:
    try:
        network = build_on_terms(architecture, spec, terms)
        with torch.no_grad():
            network.eval()
            output = network(torch.zeros(2, *spec.input_shape))
            if said := describe_output(output):
                console.note(f"`arch={arch}`: {said}")
                network.register_forward_hook(_take_logits)
            logits = find_logits(output)
    except SmoothctlError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"`arch={arch}` cannot be built for images of shape {spec.input_shape}: {reason}") from error
    if logits.ndim != 2:
        raise UsageError(
            f"`arch={arch}` gives outputs of shape {tuple(logits.shape[1:])}, not {spec.num_classes} logits an image"
        )
    if logits.shape[1] != spec.num_classes:
        raise UsageError(
            f"`arch={arch}` gives {logits.shape[1]} logits, but there are {spec.num_classes} classes; `dataset` says "
            "which they are"
        )
    return network.train()


def _take_logits(module: nn.Module, arguments: Any, output: Any) -> Tensor:
    """A forward hook: adds no key to a state dict, as a wrapper would."""
    return find_logits(output)


def find_architecture(arch: str) -> Registered:
    """The registered architecture of a name, or a user's own ``module:build`` or ``file.py:build``.

    Raises UsageError for a name that nobody registered, or a module that cannot be imported.
    """
    if user_module.is_own(arch):
        return user_module.load(arch)
    if arch.endswith(".py"):
        raise UsageError(f"`arch={arch}`: say which of its functions builds the network, as in `arch={arch}:build`")
    return registry().find("architecture", arch)


def member_name(entry: Registered, arch: str) -> str:
    """What an architecture is told of its name: a family's member, or the canonical name."""
    return arch.split("/", 1)[1] if entry.name.endswith("/") else entry.name


def canonical_arch(arch: str) -> str:
    """The name that files record: an alias becomes its architecture's name, a family member stays."""
    entry = find_architecture(arch)
    return arch if entry.name.endswith("/") else entry.name


def _check_options(architecture: Architecture, arch: str, options: Mapping[str, Any], terms: Terms) -> dict[str, Any]:
    check_file_options(architecture, arch, options, terms)
    known = architecture.options
    if known is not None and (unknown := sorted(set(options) - set(known))):
        there = ", ".join(known) or "none"
        raise UsageError(f"`arch={arch}` has no option {unknown[0]!r}; its options: {there}")
    return {
        name: _read_value(value)
        for name, value in options.items()
        if terms.initial or name not in architecture.initial_options
    }


def _read_value(value: Any) -> Any:
    """The number, truth value or None that a text of the command line stands for, or the text itself."""
    if not isinstance(value, str):
        return value
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return words[value.lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
