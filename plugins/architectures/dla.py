"""Deep layer aggregation for small images (Yu et al. 2018), as the CRT paper uses it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Architecture, ModelSpec, hookimpl


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, which is projected where the shape changes."""

    def __init__(self, inputs: int, width: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != width:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Root(nn.Module):
    """Aggregate: concatenate, 1x1 convolution, batch norm, ReLU."""

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.conv = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn = nn.BatchNorm2d(width)

    def forward(self, parts: Sequence[Tensor]) -> Tensor:
        return F.relu(self.bn(self.conv(torch.cat(list(parts), dim=1))))


class Tree(nn.Module):
    """One level: two blocks under a root. Two levels: a tree of one level before them, and a block beside it."""

    def __init__(self, inputs: int, width: int, levels: int, stride: int):
        super().__init__()
        self.levels = levels
        self.root = Root(2 * width if levels == 1 else 4 * width, width)
        if levels == 2:
            self.level_1 = Tree(inputs, width, 1, stride)
            self.prev_root = BasicBlock(inputs, width, stride)
        first = (inputs, width, stride) if levels == 1 else (width, width, 1)
        self.left_node = BasicBlock(*first)
        self.right_node = BasicBlock(width, width)

    def forward(self, x: Tensor) -> Tensor:
        before: list[Tensor] = []
        if self.levels == 2:
            beside = self.prev_root(x)
            x = self.level_1(x)
            before = [beside, x]
        left = self.left_node(x)
        aggregated: Tensor = self.root([*before, left, self.right_node(left)])
        return aggregated


def _convolution(inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())


def build(spec: ModelSpec) -> nn.Module:
    """16,291,386 parameters for colour images and 10 classes."""
    return nn.Sequential(
        OrderedDict(
            base=_convolution(spec.input_shape[0], 16),
            layer1=_convolution(16, 16),
            layer2=_convolution(16, 32),
            layer3=Tree(32, 64, 1, 1),
            layer4=Tree(64, 128, 2, 2),
            layer5=Tree(128, 256, 2, 2),
            layer6=Tree(256, 512, 1, 2),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            linear=nn.Linear(512, spec.num_classes),
        )
    )


@hookimpl
def register_architectures() -> list[Architecture]:
    return [Architecture("dla", build, summary="DLA for small images (CRT paper)", dataset="cifar10")]
