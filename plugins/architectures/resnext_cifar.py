"""ResNeXt-29 for small images (Xie et al. 2017), with the 1x1 stem of the CRT paper's models."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Architecture, ModelSpec, hookimpl

GROUPS = {"2x64d": (2, 64), "4x64d": (4, 64), "8x64d": (8, 64), "32x4d": (32, 4)}


class Block(nn.Module):
    """1x1, grouped 3x3 and widening 1x1 convolutions, and a shortcut."""

    def __init__(self, inputs: int, width: int, cardinality: int, stride: int):
        super().__init__()
        outputs = 2 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=cardinality, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


def build(cardinality: int, group_width: int, spec: ModelSpec) -> nn.Module:
    """9,128,778 parameters (2x64d) for colour images and 10 classes: three stages of three blocks."""
    parts: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(spec.input_shape[0], 64, 1, bias=False), bn1=nn.BatchNorm2d(64), relu=nn.ReLU()
    )
    inputs, width = 64, cardinality * group_width
    for number, stride in enumerate((1, 2, 2), start=1):
        blocks = [
            Block(inputs if at == 0 else 2 * width, width, cardinality, stride if at == 0 else 1) for at in range(3)
        ]
        parts[f"layer{number}"] = nn.Sequential(*blocks)
        inputs, width = 2 * width, 2 * width
    parts["pool"], parts["flatten"] = nn.AdaptiveAvgPool2d(1), nn.Flatten()
    parts["linear"] = nn.Linear(inputs, spec.num_classes)
    return nn.Sequential(parts)


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture(
            f"resnext29_{kind}",
            partial(build, *groups),
            summary=f"ResNeXt-29 {kind} for small images (CRT paper's family)",
            aliases=(kind, *(("resnext29",) if kind == "2x64d" else ())),
            dataset="cifar10",
        )
        for kind, groups in GROUPS.items()
    ]
