"""The precision in which a network trains fastest on a device: measured, since no feature of a processor decides it."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

from smoothctl.base.devices import matmul_precision
from smoothctl.hooks.recipes import TrainingPrecision
from smoothctl.training.passes import CountedModel

CANDIDATES: dict[str, tuple[TrainingPrecision, ...]] = {"cpu": ("fp32", "bf16"), "cuda": ("fp32", "tf32", "bf16")}
"""By kind of device; without loss scaling, whose first steps would be other ones."""
ROUNDS, IMAGES = 3, 32
HOPELESS = 4
"""A precision this many times slower than fp32 in its first step is not tried again: emulated bf16 takes seconds."""
GAIN = 0.95
"""Of the time in fp32, what a lower precision may take at most to be worth it."""


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
    first = {name: _seconds(network, name, x) for name, network in networks.items()}
    hopeful = [name for name in networks if first[name] <= HOPELESS * first["fp32"]]
    rounds = [{name: _seconds(networks[name], name, x) for name in hopeful} for _ in range(ROUNDS)]
    return {name: min(times[name] for times in rounds) if name in hopeful else first[name] for name in networks}


def _seconds(network: CountedModel, precision: TrainingPrecision, x: Tensor) -> float:
    start = time.perf_counter()
    with matmul_precision(precision == "tf32"):
        logits = network(x)
        loss = nn.functional.cross_entropy(logits, torch.zeros(len(x), dtype=torch.long, device=x.device))
        loss.backward()  # type: ignore[no-untyped-call]
        loss.item()  # waits for the device
    return time.perf_counter() - start


def fastest(seconds: dict[TrainingPrecision, float]) -> TrainingPrecision:
    """The fastest precision; fp32 unless another saves a twentieth at least."""
    best = min(seconds, key=lambda name: seconds[name])
    return best if seconds[best] <= GAIN * seconds["fp32"] else "fp32"
