"""Networks in the formats of other runtimes: ONNX, and programs of torch.export."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from smoothctl.base.devices import evaluating
from smoothctl.base.errors import UsageError

PIXELS, LOGITS = "pixels", "logits"
"""What the input and the output of an ONNX file are called."""


def export_program(model: nn.Module, shape: tuple[int, int, int]) -> ExportedProgram:
    """The network as a program of torch.export, for batches of any size of images [C,H,W].

    Raises UsageError if it cannot be exported.
    """
    with _exporting(model):
        return torch.export.export(model, (torch.rand(2, *shape),), dynamic_shapes=({0: Dim("batch")},))


def export_onnx(model: nn.Module, shape: tuple[int, int, int], metadata: dict[str, str] | None = None) -> bytes:
    """The network as ONNX, for batches of any size of images [C,H,W], with texts about it.

    Raises UsageError if it cannot be exported.
    """
    _require_onnx()
    sizes = ({0: Dim("batch")},)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with _exporting(model):
        program = torch.onnx.export(
            model, (torch.rand(2, *shape),), dynamo=True, dynamic_shapes=sizes, verbose=False,
            input_names=[PIXELS], output_names=[LOGITS],
        )  # fmt: skip
        assert program is not None
        program.model.metadata_props.update(metadata or {})
        exported: bytes = program.model_proto.SerializeToString()
    return exported


def run_onnx(exported: bytes) -> Callable[[Tensor], Tensor]:
    """What an ONNX network computes in ONNX Runtime on a CPU, in fp32: images [B,C,H,W] to logits [B,K].

    Raises UsageError if it cannot be run.
    """
    _require_onnx()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise UsageError(f"ONNX Runtime cannot run this network ({reason})") from error
    return lambda x: torch.from_numpy(session.run([LOGITS], {PIXELS: x.numpy()})[0])


def _require_onnx() -> None:
    missing = [name for name in ("onnxruntime", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"it needs {' and '.join(missing)}: pip install 'smoothctl[onnx]'")


@contextlib.contextmanager
def _exporting(model: nn.Module) -> Iterator[None]:
    """Exporters talk to stdout, which belongs to results, and want tensors that may have gradients."""
    with evaluating(model), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.inference_mode(False), torch.no_grad():
            try:
                yield
            except Exception as error:
                reason = " ".join(str(error).split())[:120]
                raise UsageError(f"this network cannot be exported ({reason})") from error
