"""ResNets for small images (He et al. 2016, section 4.2), with global pooling."""

from __future__ import annotations

import math
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Architecture, ModelSpec, hookimpl

DEPTHS = (20, 32, 44, 56, 110)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut: where the shape changes it is projected (option B), or, without
    parameters, every other pixel padded with channels of zeros (option A)."""

    def __init__(self, inputs: int, width: int, stride: int, projected: bool):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.stride, self.padding = stride, (width - inputs) // 2
        self.downsample: nn.Module = nn.Identity()
        if projected and (stride != 1 or inputs != width):
            self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        self.projected = projected

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self._shortcut(x))

    def _shortcut(self, x: Tensor) -> Tensor:
        if self.projected:
            kept: Tensor = self.downsample(x)
            return kept
        x = x[:, :, :: self.stride, :: self.stride]
        return F.pad(x, (0, 0, 0, 0, self.padding, self.padding)) if self.padding else x


class ResNet(nn.Module):
    """Three stages of 16, 32 and 64 channels; depth 6n+2 has n blocks a stage. ``head`` names the last layer."""

    def __init__(self, depth: int, channels: int, num_classes: int, projected: bool, head: str):
        super().__init__()
        blocks = (depth - 2) // 6
        self.head = head
        self.conv1 = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self._stage(16, 16, blocks, 1, projected)
        self.layer2 = self._stage(16, 32, blocks, 2, projected)
        self.layer3 = self._stage(32, 64, blocks, 2, projected)
        self.add_module(head, nn.Linear(64, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan_out = module.kernel_size[0] * module.kernel_size[1] * module.out_channels
                nn.init.normal_(module.weight, 0, math.sqrt(2 / fan_out))

    @staticmethod
    def _stage(inputs: int, width: int, blocks: int, stride: int, projected: bool) -> nn.Sequential:
        first = BasicBlock(inputs, width, stride, projected)
        return nn.Sequential(first, *(BasicBlock(width, width, 1, projected) for _ in range(blocks - 1)))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        logits: Tensor = self.get_submodule(self.head)(x.mean(dim=(2, 3)))
        return logits


def build(depth: int, spec: ModelSpec) -> nn.Module:
    """272,474 (depth 20) to 1,730,714 (depth 110) parameters for colour images and 10 classes."""
    return ResNet(depth, spec.input_shape[0], spec.num_classes, projected=True, head="fc")


def build_option_a(depth: int, spec: ModelSpec) -> nn.Module:
    """The paper's own count: 269,722 (depth 20) to 1,727,962 (depth 110) parameters."""
    return ResNet(depth, spec.input_shape[0], spec.num_classes, projected=False, head="linear")


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        *(
            Architecture(
                f"resnet{depth}",
                partial(build, depth),
                summary=f"ResNet-{depth} for small images (He et al. 2016), projection shortcuts",
                aliases=(f"r{depth}", f"cifar_resnet{depth}", *(("imagenet32_resnet110",) if depth == 110 else ())),
                dataset="cifar10",
            )
            for depth in DEPTHS
        ),
        *(
            Architecture(
                f"resnet{depth}a",
                partial(build_option_a, depth),
                summary=f"ResNet-{depth} for small images, shortcuts without parameters (option A)",
                aliases=(f"akamaster_resnet{depth}",),
                dataset="cifar10",
            )
            for depth in DEPTHS
        ),
    ]
