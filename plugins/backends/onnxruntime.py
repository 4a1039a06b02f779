"""ONNX Runtime on a CPU, from which convolutional networks gain most."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING

from smoothctl import Backend, UsageError, Workload, export_onnx, hookimpl

if TYPE_CHECKING:
    from torch import Tensor, nn


def prepare(model: nn.Module, work: Workload) -> Callable[[Tensor], Tensor]:
    import torch

    missing = [name for name in ("onnxruntime", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"it needs {' and '.join(missing)}: pip install 'smoothctl[onnx]'")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    try:
        exported = export_onnx(model, work.shape)
        session = onnxruntime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise UsageError(f"this network cannot be exported ({reason})") from error
    name = session.get_inputs()[0].name

    def logits(x: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {name: x.numpy()})[0])

    return logits


@hookimpl
def register_backends() -> list[Backend]:
    return [
        Backend(
            "onnxruntime", prepare, "ONNX Runtime on a CPU, in fp32", devices=("cpu",), precisions=("fp32",),
            least_passes=100_000, own_threads=True,
        )
    ]  # fmt: skip
