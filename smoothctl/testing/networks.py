"""An architecture is held to what training, saving and certifying rely on."""

from __future__ import annotations

import io

import torch
from torch import nn

from smoothctl.base.errors import UsageError
from smoothctl.hooks.networks import Architecture, ModelSpec
from smoothctl.smoothing.probe import ROWS, require_own_rows

CLASSES = (10, 7)


def check_architecture(architecture: Architecture, shape: tuple[int, int, int] = (3, 32, 32), name: str = "") -> None:
    """Hold an architecture to its contract on images [C,H,W]; raise AssertionError with what does not fit.

    Logits [B,K] that are finite and depend on their own image only, weights that can be saved and loaded, and gradients
    for all that is trained. ``name``: the member of a family, if it has no example.
    """
    told = architecture.name
    assert architecture.summary, f"{told}: say in summary what it is"
    wanted = name or architecture.name + architecture.example
    for classes in CLASSES:
        network = _build(architecture, wanted, classes, shape)
        x = torch.rand(ROWS, *shape, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            logits = network(x)
        assert logits.shape == (ROWS, classes), (
            f"{told}: logits {tuple(logits.shape)} for {ROWS} images and {classes} classes"
        )
        assert torch.isfinite(logits).all(), f"{told}: logits are not finite"
        with torch.no_grad():
            try:
                require_own_rows(network, x, "fp32", network)
            except UsageError as error:
                raise AssertionError(f"{told}: {error}") from None
    saved = io.BytesIO()
    torch.save(network.state_dict(), saved)
    saved.seek(0)
    other = _build(architecture, wanted, classes, shape)
    other.load_state_dict(torch.load(saved, weights_only=True))
    with torch.no_grad():
        assert torch.equal(other(x), logits), f"{told}: with its own weights it gives other logits"
    network.train()
    network(x).square().mean().backward()
    still = [key for key, each in network.named_parameters() if each.requires_grad and each.grad is None]
    assert not still, f"{told}: nothing depends on its parameter {still[0]}"


def _build(architecture: Architecture, name: str, classes: int, shape: tuple[int, int, int]) -> nn.Module:
    member = name.removeprefix(architecture.name) if architecture.name.endswith("/") else name
    constants = (0.0,) * shape[0], (1.0,) * shape[0]
    network = architecture.build(ModelSpec(member, classes, shape, {}, *constants))
    with torch.no_grad():
        network.eval()(torch.zeros(1, *shape))  # lazy layers take their sizes
    return network
