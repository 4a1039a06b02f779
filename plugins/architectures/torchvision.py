"""Every classifier of torchvision, as ``torchvision/NAME``; its ResNets for ImageNet also under their own names."""

from __future__ import annotations

import contextlib
import inspect
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from smoothctl import Architecture, ModelSpec, SmoothctlError, UsageError, hookimpl

# Plain settings that a model file may hold.
PLAIN = (
    *("dropout", "attention_dropout", "stochastic_depth_prob", "drop_rate", "growth_rate", "bn_size", "alpha"),
    *("width_mult", "width_per_group", "groups", "zero_init_residual", "replace_stride_with_dilation"),
    *("image_size", "aux_logits", "transform_input", "init_weights", "layer_scale"),
)
PRETRAINED = "true: start from torchvision's pretrained weights, fetched if they are not in its cache"
WEIGHTS = "which of them, such as IMAGENET1K_V2"
SECONDS_TO_ANSWER = 10


def build(spec: ModelSpec) -> nn.Module:
    """Create a torchvision classifier for these channels, classes and image sizes.

    Raises SmoothctlError if pretrained weights are asked for and can't be had.
    """
    from torchvision import models

    known = models.list_models(module=models)
    if spec.name not in known:
        close = [name for name in known if spec.name.replace("_", "")[:5] in name.replace("_", "")][:5]
        hint = f"; torchvision has {', '.join(close)}" if close else ""
        raise UsageError(f"torchvision has no classifier {spec.name!r}{hint}")
    options = dict(spec.options)
    chosen = _choose_weights(models, spec.name, options.pop("pretrained", False), options.pop("weights", None))
    options |= _fixed(models.get_model_builder(spec.name), spec, options)
    if chosen is None:
        return _for_channels(models.get_model(spec.name, weights=None, num_classes=spec.num_classes, **options), spec)
    with _fetching(spec.name, chosen.url):
        network = models.get_model(spec.name, weights=chosen, **options)
    return _for_channels(_for_classes(network, spec.num_classes), spec)


def _choose_weights(models: Any, name: str, pretrained: Any, weights: Any) -> Any:
    """The member of torchvision's enumeration that ``weights=NAME`` names, or the default of ``pretrained=true``."""
    if weights in (None, False) and not pretrained:
        return None
    known = models.get_model_weights(name).__members__
    wanted = "DEFAULT" if weights in (None, False, True) else str(weights).rpartition(".")[2]
    if wanted not in known:
        raise UsageError(f"torchvision has no weights {weights!r} of {name}; it has {', '.join(known) or 'none'}")
    return known[wanted]


@contextlib.contextmanager
def _fetching(name: str, url: str) -> Iterator[None]:
    """Bound the wait for an answer; raise SmoothctlError, with what to put where, if the weights cannot be had."""
    from torch import hub

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SECONDS_TO_ANSWER)
    try:
        yield
    except OSError as error:
        file = Path(hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
        raise SmoothctlError(
            f"pretrained weights of torchvision/{name} cannot be fetched ({error}); without a network, put {url} there "
            f"as {file}, or leave pretrained out"
        ) from None
    finally:
        socket.setdefaulttimeout(before)


def _fixed(builder: Any, spec: ModelSpec, options: dict[str, Any]) -> dict[str, Any]:
    """What some builders need to know: the size of images, and that there are no auxiliary outputs."""
    name = getattr(builder, "__name__", "")
    if name.startswith("vit_"):
        return {"image_size": spec.input_shape[1]} if "image_size" not in options else {}
    if "aux_logits" in inspect.signature(getattr(builder, "__wrapped__", builder)).parameters or name in (
        "googlenet",
        "inception_v3",
    ):
        return {"aux_logits": False, "init_weights": False}
    return {}


def _for_channels(network: nn.Module, spec: ModelSpec) -> nn.Module:
    """Give the first convolution as many input channels as the images have."""
    name, first = next((name, layer) for name, layer in network.named_modules() if isinstance(layer, nn.Conv2d))
    if first.in_channels == spec.input_shape[0]:
        return network
    kept: Any = {key: getattr(first, key) for key in ("kernel_size", "stride", "padding", "dilation", "groups")}
    bias = first.bias is not None
    _replace(network, name, nn.Conv2d(spec.input_shape[0], first.out_channels, **kept, bias=bias))
    return network


def _for_classes(network: nn.Module, num_classes: int) -> nn.Module:
    """Give a pretrained network a fresh last layer, linear or a convolution, for another number of classes."""
    name, last = [pair for pair in network.named_modules() if isinstance(pair[1], nn.Linear | nn.Conv2d)][-1]
    if isinstance(last, nn.Linear) and last.out_features != num_classes:
        _replace(network, name, nn.Linear(last.in_features, num_classes))
    elif isinstance(last, nn.Conv2d) and last.out_channels != num_classes:
        _replace(network, name, nn.Conv2d(last.in_channels, num_classes, last.kernel_size))  # type: ignore[arg-type]
    return network


def _replace(network: nn.Module, name: str, layer: nn.Module) -> None:
    place, _, last = name.rpartition(".")
    setattr(network.get_submodule(place), last, layer)


@hookimpl
def register_architectures() -> list[Architecture]:
    family = Architecture(
        "torchvision/",
        build,
        summary="any classifier of torchvision, such as torchvision/resnet50",
        options=None,
        initial_options=("pretrained", "weights"),
        dataset="imagenet",
        example="squeezenet1_1",
    )
    named = [
        Architecture(
            name,
            build,
            summary=f"{name.replace('resnet', 'ResNet-')} for ImageNet, torchvision's",
            options={"pretrained": PRETRAINED, "weights": WEIGHTS},
            initial_options=("pretrained", "weights"),
            dataset="imagenet",
        )
        for name in ("resnet18", "resnet50")
    ]
    return [family, *named]
