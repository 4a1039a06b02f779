"""Networks in the formats of other runtimes."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings

import torch
from torch import nn

from smoothctl.base.devices import evaluating


def export_onnx(model: nn.Module, shape: tuple[int, int, int]) -> bytes:
    """The network as ONNX, for batches of any size."""
    example = torch.rand(2, *shape)
    sizes = ({0: torch.export.Dim("batch")},)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    # The exporter talks to stdout, which belongs to results.
    with evaluating(model), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.inference_mode(False), torch.no_grad():
            program = torch.onnx.export(model, (example,), dynamo=True, dynamic_shapes=sizes, verbose=False)
    assert program is not None
    exported: bytes = program.model_proto.SerializeToString()
    return exported
