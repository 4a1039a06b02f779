"""A backend is held to PyTorch's logits."""

from __future__ import annotations

import torch
from torch import nn

from smoothctl.hooks.backends import Backend, Workload
from smoothctl.smoothing.agreement import AGREEMENT, PROBES, largest_difference, probe_images
from smoothctl.smoothing.backends import plain
from smoothctl.testing.methods import SHAPE, tiny_network


def check_backend(backend: Backend, network: nn.Module | None = None, shape: tuple[int, int, int] = SHAPE) -> None:
    """Hold a backend to PyTorch's logits in fp32 on a CPU; raise AssertionError with what does not fit.

    They agree on batches of several sizes, and the network is left as it is. ``network`` takes pixels [B,C,H,W] of a
    shape [C,H,W]; by default it is a tiny one.
    """
    name = backend.name
    assert backend.summary, f"{name}: say in summary what it is"
    assert backend.serves("cpu", "fp32"), f"{name}: only backends that serve fp32 on a CPU can be checked"
    network = (network or tiny_network()).eval().requires_grad_(False)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    probes = probe_images(shape)
    expected = plain(network).logits(probes)
    logits = backend.prepare(network, Workload(shape, torch.device("cpu"), PROBES, "fp32"))
    difference = largest_difference(logits, lambda _: expected, probes)
    assert difference <= AGREEMENT, f"{name}: its logits differ from PyTorch's by {difference:.2g}"
    after = network.state_dict()
    kept = before.keys() == after.keys() and all(torch.equal(before[key], after[key]) for key in before)
    assert kept, f"{name}: it changes the network"
    assert not network.training, f"{name}: it leaves the network in training mode"
