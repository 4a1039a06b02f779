"""Base classifiers: a normalising first layer and a network, from pixels in [0,1] to logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from smoothctl.api import Architecture, ModelSpec
from smoothctl.errors import UsageError
from smoothctl.plugins import Registered


class Normalize(nn.Module):
    """Subtract a mean and divide by a standard deviation per channel; adds no keys to a state dict."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise [B,C,H,W]."""
        return (x - self.mean) / self.std


class BaseClassifier(nn.Module):
    """``network(normalize(x))``: what smoothing turns into a smoothed classifier."""

    def __init__(self, network: nn.Module, mean: Sequence[float], std: Sequence[float]):
        super().__init__()
        self.normalize = Normalize(mean, std)
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B,K] of pixels [B,C,H,W] in [0,1], noise included."""
        logits: Tensor = self.network(self.normalize(x))
        return logits


def build_network(
    entry: Registered,
    asked_name: str,
    num_classes: int,
    input_shape: tuple[int, int, int],
    options: Mapping[str, Any],
) -> nn.Module:
    """Build an architecture; raises UsageError, in one line, if it cannot take these images or options."""
    architecture: Architecture = entry.value
    name = asked_name.split("/", 1)[1] if architecture.name.endswith("/") else architecture.name
    try:
        network = architecture.build(ModelSpec(name, num_classes, input_shape, options))
        with torch.no_grad():
            network.eval()
            logits = network(torch.zeros(2, *input_shape))
    except UsageError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"--arch {asked_name} cannot be built for images of shape {input_shape}: {reason}") from error
    if logits.shape != (2, num_classes):
        raise UsageError(
            f"--arch {asked_name} gives outputs of shape {tuple(logits.shape[1:])}, not {num_classes} logits"
        )
    return network.train()


def canonical_arch(entry: Registered, asked_name: str) -> str:
    """The name that files record: an alias becomes its architecture's name, a family member stays."""
    return asked_name if entry.name.endswith("/") else entry.name
