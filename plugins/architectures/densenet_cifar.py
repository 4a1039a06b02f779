"""DenseNet for small images (Huang et al. 2017), as Jeong and Shin 2020 use it: bottlenecks, no compression."""

from __future__ import annotations

import math
from collections import OrderedDict

import torch
from torch import Tensor, nn

from smoothctl import Architecture, ModelSpec, hookimpl

GROWTH, LAYERS = 12, 6


def _convolution(inputs: int, width: int, kernel: int) -> nn.Sequential:
    """Batch norm, ReLU, convolution."""
    convolution = nn.Conv2d(inputs, width, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(OrderedDict(norm=nn.BatchNorm2d(inputs), relu=nn.ReLU(), conv=convolution))


class DenseLayer(nn.Module):
    """A 1x1 bottleneck and a 3x3 convolution, whose channels are added to those there are."""

    def __init__(self, inputs: int):
        super().__init__()
        self.brc_1 = _convolution(inputs, 4 * GROWTH, 1)
        self.brc_2 = _convolution(4 * GROWTH, GROWTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.brc_2(self.brc_1(x))], dim=1)


def build(spec: ModelSpec) -> nn.Module:
    """211,978 parameters for colour images and 10 classes: three blocks of six layers, halved in between."""
    width = 2 * GROWTH
    features: OrderedDict[str, nn.Module] = OrderedDict(
        conv0=nn.Conv2d(spec.input_shape[0], width, 3, padding=1, bias=False)
    )
    for number in (1, 2, 3):
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            (f"layer{at + 1}", DenseLayer(width + at * GROWTH)) for at in range(LAYERS)
        )
        features[f"block{number}"] = nn.Sequential(layers)
        width += LAYERS * GROWTH
        if number < 3:
            features[f"trans{number}"] = nn.AvgPool2d(2)
    features |= {"norm_last": nn.BatchNorm2d(width), "relu_last": nn.ReLU(), "pool_last": nn.AdaptiveAvgPool2d(1)}
    network = nn.Sequential(
        OrderedDict(
            features=nn.Sequential(features), flatten=nn.Flatten(), classifier=nn.Linear(width, spec.num_classes)
        )
    )
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.kernel_size[0] * module.kernel_size[1] * module.out_channels
            nn.init.normal_(module.weight, 0, math.sqrt(2 / fan_out))
    return network


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture(
            "densenet40",
            build,
            summary="DenseNet-BC-40 (k=12) for small images",
            aliases=("cifar_densenet40",),
            dataset="cifar10",
        )
    ]
