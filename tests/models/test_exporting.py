"""Exported networks answer as PyTorch does, for batches of any size."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from smoothctl.hooks.registry import Registered, registry
from smoothctl.models.classifier import build_classifier, sketch_network
from smoothctl.smoothing.exporting import export_onnx

AGREEMENT = 1e-4
SHAPES = {"mnist": (1, 28, 28), "imagenet": (3, 64, 64)}

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


def shape_of(entry: Registered) -> tuple[int, int, int]:
    return SHAPES.get(entry.value.dataset, (3, 32, 32))


def name_of(entry: Registered) -> str:
    return str(entry.name + entry.value.example if entry.name.endswith("/") else entry.name)


def buildable() -> list[Registered]:
    """Every architecture but those that can only be made from files."""
    return [entry for entry in registry().all("architecture") if not name_of(entry).endswith("/")]


def one_of_each_kind() -> list[Registered]:
    """Of all networks of a plugin that are made of the same layers, the smallest: others have more of them."""
    smallest: dict[object, tuple[int, Registered]] = {}
    for entry in buildable():
        network = None if entry.name.endswith("/") else sketch_network(entry, 10, shape_of(entry))
        layers = frozenset(type(layer) for layer in network.modules()) if network is not None else entry.name
        size = sum(value.numel() for value in network.parameters()) if network is not None else 0
        kind = entry.source, layers
        if kind not in smallest or size < smallest[kind][0]:
            smallest[kind] = size, entry
    return [entry for _, entry in smallest.values()]


def noisy_images(count: int, entry: Registered) -> Tensor:
    return torch.rand(count, *shape_of(entry)) + 0.5 * torch.randn(count, *shape_of(entry))


def make(entry: Registered) -> nn.Module:
    """An architecture with statistics in its batch norms, as training leaves them."""
    torch.manual_seed(0)
    shape = shape_of(entry)
    classifier = build_classifier(name_of(entry), 10, shape, mean=[0.5] * shape[0], std=[0.25] * shape[0])
    for layer in classifier.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = None  # the mean of all batches
    with torch.no_grad():
        classifier(noisy_images(8, entry))
    return classifier.eval().requires_grad_(False)


@pytest.mark.parametrize("entry", one_of_each_kind(), ids=name_of)
def test_every_architecture_answers_alike_in_onnx_runtime(entry: Registered) -> None:
    model = make(entry)
    session = onnxruntime.InferenceSession(export_onnx(model, shape_of(entry)), providers=["CPUExecutionProvider"])
    for count in (1, 2, 5):
        x = noisy_images(count, entry)
        (logits,) = session.run(None, {"pixels": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(logits), model(x), atol=AGREEMENT, rtol=AGREEMENT)
