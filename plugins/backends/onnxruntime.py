"""ONNX Runtime on a CPU, from which convolutional networks gain most."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from smoothctl import Backend, Workload, export_onnx, hookimpl, run_onnx

if TYPE_CHECKING:
    from torch import Tensor, nn


def prepare(model: nn.Module, work: Workload) -> Callable[[Tensor], Tensor]:
    return run_onnx(export_onnx(model, work.shape))


@hookimpl
def register_backends() -> list[Backend]:
    return [
        Backend(
            "onnxruntime", prepare, "ONNX Runtime on a CPU, in fp32", devices=("cpu",), precisions=("fp32",),
            least_passes=100_000, own_threads=True,
        )
    ]  # fmt: skip
