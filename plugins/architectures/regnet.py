"""RegNets (Radosavovic et al. 2020): for small images with the stride-1 stem of the CRT paper's models, and its
RegNetX-4.0GF for ImageNet, each under the keys of the published files."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Architecture, ModelSpec, hookimpl


@dataclass(frozen=True)
class Layout:
    """Blocks, width and stride of each stage, channels per group, share of squeeze-and-excitation, the stem's
    width and stride, and what the files call shortcut and last layer."""

    depths: tuple[int, ...]
    widths: tuple[int, ...]
    strides: tuple[int, ...]
    group_width: int
    squeeze: float = 0.0
    stem: tuple[int, int] = (64, 1)
    shortcut: str = "shortcut"
    head: str = "linear"


SMALL = {
    "regnetx_200mf": Layout((1, 1, 4, 7), (24, 56, 152, 368), (1, 1, 2, 2), 8),
    "regnetx_400mf": Layout((1, 2, 7, 12), (32, 64, 160, 384), (1, 1, 2, 2), 16),
    "regnety_400mf": Layout((1, 2, 7, 12), (32, 64, 160, 384), (1, 1, 2, 2), 16, squeeze=0.25),
}
ALIASES = {"regnetx_200mf": ("regnetx", "200mf"), "regnetx_400mf": ("400mf",)}
X_4GF = Layout((2, 5, 14, 2), (80, 240, 560, 1360), (2, 2, 2, 2), 40, 0.0, (32, 2), "downsample", "fc")


class SqueezeExcite(nn.Module):
    """Scale channels by what their means say (Hu et al. 2018)."""

    def __init__(self, width: int, squeezed: int):
        super().__init__()
        self.se1 = nn.Conv2d(width, squeezed, 1)
        self.se2 = nn.Conv2d(squeezed, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale: Tensor = self.se2(F.relu(self.se1(x.mean(dim=(2, 3), keepdim=True)))).sigmoid()
        return x * scale


class Block(nn.Module):
    """1x1, grouped 3x3 and 1x1 convolutions of one width (bottleneck ratio 1) and a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int, layout: Layout):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=width // layout.group_width, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.se = SqueezeExcite(width, round(inputs * layout.squeeze)) if layout.squeeze else nn.Identity()
        self.conv3 = nn.Conv2d(width, width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width)
        shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != width:
            shortcut = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        self.shortcut_name = layout.shortcut
        self.add_module(layout.shortcut, shortcut)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.se(F.relu(self.bn2(self.conv2(y))))
        return F.relu(self.bn3(self.conv3(y)) + self.get_submodule(self.shortcut_name)(x))


def build(layout: Layout, spec: ModelSpec) -> nn.Module:
    """2,321,946 parameters (X, 200 MF, 10 classes) or 22,118,248 (X, 4 GF, 1000 classes) for colour images."""
    inputs, stride = layout.stem
    parts: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(spec.input_shape[0], inputs, 3, stride, 1, bias=False),
        bn1=nn.BatchNorm2d(inputs),
        relu=nn.ReLU(),
    )
    stages = zip(layout.depths, layout.widths, layout.strides, strict=True)
    for number, (depth, width, stride) in enumerate(stages, start=1):
        blocks = [Block(inputs if at == 0 else width, width, stride if at == 0 else 1, layout) for at in range(depth)]
        parts[f"layer{number}"] = nn.Sequential(*blocks)
        inputs = width
    parts["pool"], parts["flatten"] = nn.AdaptiveAvgPool2d(1), nn.Flatten()
    parts[layout.head] = nn.Linear(inputs, spec.num_classes)
    return nn.Sequential(parts)


def build_imagenet(layout: Layout, spec: ModelSpec) -> nn.Module:
    """Initialised as published: convolutions after He et al., blocks that start as their shortcut."""
    network = build(layout, spec)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, Block):
            nn.init.zeros_(module.bn3.weight)
    return network


@hookimpl
def register_architectures() -> list[Architecture]:
    small = [
        Architecture(
            name,
            partial(build, layout),
            summary=f"RegNet{name[6].upper()}-{name[8:].upper()} for small images (CRT paper's family)",
            aliases=ALIASES.get(name, ()),
            dataset="cifar10",
        )
        for name, layout in SMALL.items()
    ]
    large = Architecture(
        "regnetx_040",
        partial(build_imagenet, X_4GF),
        summary="RegNetX-4.0GF for ImageNet under the CRT paper's keys (timm's: timm/regnetx_040)",
        dataset="imagenet",
    )
    return [*small, large]
