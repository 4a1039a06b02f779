"""RegNets for small images (Radosavovic et al. 2020), with the stride-1 stem of the CRT paper's models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Architecture, ModelSpec, hookimpl


@dataclass(frozen=True)
class Stages:
    """Blocks, width and stride of each stage, and channels per group."""

    depths: tuple[int, ...]
    widths: tuple[int, ...]
    strides: tuple[int, ...]
    group_width: int


X_200MF = Stages((1, 1, 4, 7), (24, 56, 152, 368), (1, 1, 2, 2), 8)


class Block(nn.Module):
    """1x1, grouped 3x3 and 1x1 convolutions of one width (bottleneck ratio 1) and a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int, group_width: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=width // group_width, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != width:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class RegNet(nn.Module):
    """A 3x3 stem of 64 channels, four stages, global average pooling."""

    def __init__(self, stages: Stages, channels: int, num_classes: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for number, (depth, width, stride) in enumerate(
            zip(stages.depths, stages.widths, stages.strides, strict=True), start=1
        ):
            blocks = [
                Block(inputs if at == 0 else width, width, stride if at == 0 else 1, stages.group_width)
                for at in range(depth)
            ]
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
            inputs = width
        self.linear = nn.Linear(inputs, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        for number in (1, 2, 3, 4):
            x = self.get_submodule(f"layer{number}")(x)
        logits: Tensor = self.linear(x.mean(dim=(2, 3)))
        return logits


def build(stages: Stages, spec: ModelSpec) -> nn.Module:
    """2,321,946 parameters (X, 200 MF) for colour images and 10 classes."""
    return RegNet(stages, spec.input_shape[0], spec.num_classes)


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture(
            "regnetx_200mf",
            partial(build, X_200MF),
            summary="RegNetX-200MF for small images (CRT paper)",
            aliases=("regnetx",),
        )
    ]
