"""Backends and precisions answer alike, and say which they are."""

from __future__ import annotations

import pytest
import torch
from smoothctl_plugins.backends.eager import fold_batch_norm
from torch import nn

from smoothctl.base.errors import UsageError
from smoothctl.models.classifier import build_classifier
from smoothctl.smoothing.backends import automatic_batch_size, make_ready, plain

SHAPE = (3, 16, 16)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    model = build_classifier("resnet20", 10, SHAPE, mean=(0.5,) * 3, std=(0.25,) * 3)
    with torch.no_grad():
        model(torch.rand(64, *SHAPE))  # so that batch norm has something to fold
    return model.eval().requires_grad_(False)


def test_folding_leaves_no_batch_norm_and_the_same_answers(model: nn.Module) -> None:
    folded = fold_batch_norm(model)
    assert not [module for module in folded.modules() if isinstance(module, nn.BatchNorm2d)]
    x = torch.rand(8, *SHAPE)
    torch.testing.assert_close(folded(x), model(x), rtol=1e-4, atol=1e-4)
    assert [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]  # the model is as it was


def test_a_network_that_cannot_be_traced_is_evaluated_as_it_is() -> None:
    class Branching(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.flatten(1)[:, :2] if x.sum() > 0 else x.flatten(1)[:, 2:4]

    ready = make_ready(Branching(), SHAPE, CPU, 8, backend="eager")
    assert (ready.backend, ready.precision) == ("eager", "fp32")
    assert ready.logits(torch.ones(1, *SHAPE)).shape == (1, 2)


def test_compiled_network_agrees_for_batches_of_any_size() -> None:
    small = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    small(torch.rand(1, *SHAPE))
    ready = make_ready(small.eval().requires_grad_(False), SHAPE, CPU, 16, backend="compile")
    assert ready.backend == "compile"
    for count in (16, 5):
        x = torch.rand(count, *SHAPE)
        torch.testing.assert_close(ready.logits(x), plain(small).logits(x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("backend", ["eager", "onnxruntime"])
def test_backends_agree(model: nn.Module, backend: str) -> None:
    if backend == "onnxruntime":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    ready = make_ready(model, SHAPE, CPU, 16, backend=backend)  # type: ignore[arg-type]
    assert ready.backend == backend
    for count in (16, 5):
        x = torch.rand(count, *SHAPE)
        torch.testing.assert_close(ready.logits(x), plain(model).logits(x), rtol=1e-3, atol=1e-3)


class FixedBatch(nn.Module):
    """Uses the size of its batch as a number, so that what is exported holds that number."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3 * 16 * 16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.flatten(1)) + torch.zeros(2).repeat(len(x), 1)


def test_what_holds_the_size_of_a_batch_falls_back(capsys: pytest.CaptureFixture[str]) -> None:
    network = FixedBatch().eval().requires_grad_(False)
    ready = make_ready(network, SHAPE, CPU, 16)
    for count in (16, 5):
        x = torch.rand(count, *SHAPE)
        torch.testing.assert_close(ready.logits(x), plain(network).logits(x), rtol=1e-3, atol=1e-3)
    if ready.backend == "eager":
        assert "so it is not used" in capsys.readouterr().err
        with pytest.raises(UsageError, match="onnxruntime"):
            make_ready(network, SHAPE, CPU, 16, backend="onnxruntime")


def test_auto_takes_a_backend_that_agrees(model: nn.Module) -> None:
    assert make_ready(model, SHAPE, CPU, 16).backend in ("onnxruntime", "eager")


def test_bf16_casts_the_sum_and_says_so(model: nn.Module) -> None:
    ready = make_ready(model, SHAPE, CPU, 16, precision="bf16")
    assert ready.precision == "bf16"
    x = torch.rand(8, *SHAPE)
    got = ready.logits(x)
    assert got.dtype == torch.float32
    assert not torch.equal(got, plain(model).logits(x))
    torch.testing.assert_close(got, plain(model).logits(x), rtol=0.1, atol=0.5)


@pytest.mark.parametrize(("precision", "backend"), [("fp16", "auto"), ("tf32", "auto"), ("bf16", "onnxruntime")])
def test_what_a_cpu_cannot_do_is_refused(model: nn.Module, precision: str, backend: str) -> None:
    with pytest.raises(UsageError):
        make_ready(model, SHAPE, CPU, 16, precision=precision, backend=backend)  # type: ignore[arg-type]


def test_batch_size_follows_the_size_of_images() -> None:
    assert automatic_batch_size((3, 32, 32), CPU) == 256
    assert automatic_batch_size((3, 224, 224), CPU) == 16
    assert automatic_batch_size((1, 8, 8), CPU) == 1024
