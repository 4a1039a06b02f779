"""The precision in which a network trains fastest on a device: measured, since no feature of a processor decides it."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from smoothctl.base.devices import matmul_precision
from smoothctl.base.timing import least_seconds
from smoothctl.hooks.recipes import TrainingPrecision
from smoothctl.training.passes import CountedModel

CANDIDATES: dict[str, tuple[TrainingPrecision, ...]] = {"cpu": ("fp32", "bf16"), "cuda": ("fp32", "tf32", "bf16")}
"""By kind of device; without loss scaling, whose first steps would be other ones."""
IMAGES = 32


def step_seconds(
    model: nn.Module, shape: tuple[int, int, int], device: torch.device, batch_size: int
) -> dict[TrainingPrecision, float]:
    """Seconds of a forward and a backward pass in each precision of the device: the least of rounds in turns.

    At most ``IMAGES`` images [B,C,H,W] are taken. Gradients and statistics of batch norm are changed, so that the
    model is of no other use.
    """
    model = model.to(device).train()
    model.to(memory_format=torch.channels_last)
    x = torch.rand(min(batch_size, IMAGES), *shape, device=device)
    networks = {name: CountedModel(model, name) for name in CANDIDATES.get(device.type, ("fp32",))}
    return least_seconds({name: partial(_step, network, name, x) for name, network in networks.items()})


def _step(network: CountedModel, precision: TrainingPrecision, x: Tensor) -> None:
    with matmul_precision(precision == "tf32"):
        logits = network(x)
        loss = nn.functional.cross_entropy(logits, torch.zeros(len(x), dtype=torch.long, device=x.device))
        loss.backward()  # type: ignore[no-untyped-call]
        loss.item()  # waits for the device
