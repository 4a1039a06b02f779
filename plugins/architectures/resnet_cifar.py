"""ResNets for small images (He et al. 2016, section 4.2), with projection shortcuts and global pooling."""

from __future__ import annotations

import math
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Architecture, ModelSpec, hookimpl

DEPTHS = (20, 32, 44, 56, 110)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, which is projected where the shape changes."""

    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inputs != width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet(nn.Module):
    """Three stages of 16, 32 and 64 channels; depth 6n+2 has n blocks a stage."""

    def __init__(self, depth: int, channels: int, num_classes: int):
        super().__init__()
        blocks = (depth - 2) // 6
        self.conv1 = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self._stage(16, 16, blocks, 1)
        self.layer2 = self._stage(16, 32, blocks, 2)
        self.layer3 = self._stage(32, 64, blocks, 2)
        self.fc = nn.Linear(64, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan_out = module.kernel_size[0] * module.kernel_size[1] * module.out_channels
                nn.init.normal_(module.weight, 0, math.sqrt(2 / fan_out))

    @staticmethod
    def _stage(inputs: int, width: int, blocks: int, stride: int) -> nn.Sequential:
        first = BasicBlock(inputs, width, stride)
        return nn.Sequential(first, *(BasicBlock(width, width, 1) for _ in range(blocks - 1)))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        logits: Tensor = self.fc(x.mean(dim=(2, 3)))
        return logits


def build(depth: int, spec: ModelSpec) -> nn.Module:
    """272,474 (depth 20) to 1,730,714 (depth 110) parameters for colour images and 10 classes."""
    return ResNet(depth, spec.input_shape[0], spec.num_classes)


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture(
            f"resnet{depth}",
            partial(build, depth),
            summary=f"ResNet-{depth} for small images (He et al. 2016)",
            aliases=(f"r{depth}", f"cifar_resnet{depth}"),
        )
        for depth in DEPTHS
    ]
