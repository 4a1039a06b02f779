"""Every classifier of torchvision, as ``torchvision/NAME``; its ResNets for ImageNet also under their own names."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from smoothctl import Architecture, ModelSpec, SmoothctlError, UsageError, hookimpl

PRETRAINED = "true: start from torchvision's pretrained weights, fetched if they are not in its cache"


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
    pretrained = options.pop("pretrained", False)
    options |= _fixed(models.get_model_builder(spec.name), spec, options)
    if not pretrained:
        return _for_channels(models.get_model(spec.name, weights=None, num_classes=spec.num_classes, **options), spec)
    try:
        network = models.get_model(spec.name, weights="DEFAULT", **options)
    except OSError as error:
        raise SmoothctlError(
            f"pretrained weights of torchvision/{spec.name} cannot be fetched ({error}); without a network, put them "
            "into torch's cache (TORCH_HOME), or leave pretrained out"
        ) from None
    return _for_channels(_for_classes(network, spec.num_classes), spec)


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
    """Give a pretrained network a fresh last layer for another number of classes."""
    name, last = [pair for pair in network.named_modules() if isinstance(pair[1], nn.Linear)][-1]
    if last.out_features != num_classes:  # type: ignore[attr-defined]
        _replace(network, name, nn.Linear(last.in_features, num_classes))  # type: ignore[attr-defined]
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
        initial_options=("pretrained",),
        dataset="imagenet",
        example="squeezenet1_1",
    )
    named = [
        Architecture(
            name,
            build,
            summary=f"{name.replace('resnet', 'ResNet-')} for ImageNet, torchvision's",
            options={"pretrained": PRETRAINED},
            initial_options=("pretrained",),
            dataset="imagenet",
        )
        for name in ("resnet18", "resnet50")
    ]
    return [family, *named]
