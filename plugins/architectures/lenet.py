"""LeNet, as the MNIST experiments of this field use it: two convolutions, two linear layers."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from smoothctl import Architecture, ModelSpec, UsageError, hookimpl


def build(spec: ModelSpec) -> nn.Module:
    """431,080 parameters for 28x28 grey images. Sides below 16 pixels get padded convolutions."""
    channels, height, width = spec.input_shape
    if min(height, width) < 8:
        raise UsageError(f"lenet needs images of at least 8x8, not {height}x{width}")
    padding = 0 if min(height, width) >= 16 else 2
    sides = [((side - 4 + 2 * padding) // 2 - 4 + 2 * padding) // 2 for side in (height, width)]
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(channels, 20, 5, padding=padding),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(20, 50, 5, padding=padding),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            fc1=nn.Linear(50 * sides[0] * sides[1], 500),
            relu3=nn.ReLU(),
            fc2=nn.Linear(500, spec.num_classes),
        )
    )


def build_lenet5(spec: ModelSpec) -> nn.Module:
    """AdverTorch's LeNet5 for MNIST: 3x3 convolutions of 32 and 64 channels; 648,226 parameters."""
    channels, height, width = spec.input_shape
    if min(height, width) < 4:
        raise UsageError(f"lenet5 needs images of at least 4x4, not {height}x{width}")
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(channels, 32, 3, padding=1),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(32, 64, 3, padding=1),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            linear1=nn.Linear(64 * (height // 4) * (width // 4), 200),
            relu3=nn.ReLU(),
            linear2=nn.Linear(200, spec.num_classes),
        )
    )


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture("lenet", build, summary="LeNet, 431,080 parameters on 28x28 grey images", dataset="mnist"),
        Architecture(
            "lenet5",
            build_lenet5,
            summary="AdverTorch's LeNet5 for MNIST",
            aliases=("advertorch_lenet5",),
            dataset="mnist",
        ),
    ]
