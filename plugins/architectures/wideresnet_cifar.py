"""Wide ResNets for small images (Zagoruyko and Komodakis 2016), under the keys that most robust models have."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Architecture, ModelSpec, hookimpl

SIZES = ((28, 10), (34, 10))


class Block(nn.Module):
    """Pre-activation block: where the width changes, the shortcut is projected from the activated input."""

    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.convShortcut = nn.Conv2d(inputs, width, 1, stride, bias=False) if inputs != width else None

    def forward(self, x: Tensor) -> Tensor:
        activated = F.relu(self.bn1(x))
        y = self.conv2(F.relu(self.bn2(self.conv1(activated))))
        kept = x if self.convShortcut is None else self.convShortcut(activated)
        total: Tensor = y + kept
        return total


def _stage(inputs: int, width: int, blocks: int, stride: int) -> nn.Module:
    layers = [Block(inputs, width, stride), *(Block(width, width, 1) for _ in range(blocks - 1))]
    return nn.Sequential(OrderedDict(layer=nn.Sequential(*layers)))


def build(depth: int, factor: int, spec: ModelSpec) -> nn.Module:
    """36,479,194 (28-10) or 46,160,474 (34-10) parameters for colour images and 10 classes."""
    blocks = (depth - 4) // 6
    widths = [16, 16 * factor, 32 * factor, 64 * factor]
    network = nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(spec.input_shape[0], 16, 3, 1, 1, bias=False),
            block1=_stage(widths[0], widths[1], blocks, 1),
            block2=_stage(widths[1], widths[2], blocks, 2),
            block3=_stage(widths[2], widths[3], blocks, 2),
            bn1=nn.BatchNorm2d(widths[3]),
            relu=nn.ReLU(),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            fc=nn.Linear(widths[3], spec.num_classes),
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
            f"wideresnet{depth}_{factor}",
            partial(build, depth, factor),
            summary=f"Wide ResNet-{depth}-{factor} for small images",
            aliases=(f"wrn_{depth}_{factor}", f"{depth}-{factor}", *(("wideresnet", "wrn") if depth == 28 else ())),
            dataset="cifar10",
        )
        for depth, factor in SIZES
    ]
