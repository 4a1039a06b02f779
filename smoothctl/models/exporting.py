"""Base classifiers for other runtimes, with what a caller must know of them in the file's metadata."""

from __future__ import annotations

import io
import json
from pathlib import Path

import torch

from smoothctl.base.errors import UsageError
from smoothctl.base.files import replace_file
from smoothctl.models.checkpoint import Model, ModelInfo
from smoothctl.models.settings import ONNX, PROGRAM
from smoothctl.smoothing.agreement import AGREEMENT, Logits, largest_difference, probe_images
from smoothctl.smoothing.backends import plain
from smoothctl.smoothing.exporting import export_onnx, export_program, run_onnx


def export_model(model: Model, path: Path) -> float:
    """Write the base classifier by the ending of ``path``, unless it answers otherwise there than here.

    The file takes pixels [N,C,H,W] in [0,1], noise included, in batches of any size, and gives logits [N,K]: the
    normalization layer is part of it, noise and votes are not. Returns the largest difference of its logits from
    PyTorch's. Raises UsageError if the network cannot be exported, or what was exported does not agree.
    """
    content, logits = {ONNX: _as_onnx, PROGRAM: _as_program}[path.suffix](model)
    try:
        difference = largest_difference(logits, plain(model.classifier).logits, probe_images(model.info.input_shape))
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise UsageError(f"as {path.suffix}, this network cannot evaluate batches of every size ({reason})") from error
    if difference > AGREEMENT:
        raise UsageError(
            f"as {path.suffix}, this network does not agree with PyTorch (logits differ by {difference:.2g})"
        )
    replace_file(path, lambda temporary: temporary.write_bytes(content))
    return difference


def metadata(info: ModelInfo) -> dict[str, str]:
    """What an exported file says of itself: names to texts, JSON where they are lists; ``info`` is all of it."""
    described = info.model_dump(mode="json")
    listed = {name: json.dumps(described[name]) for name in ("class_names", "input_shape", "mean", "std")}
    return {
        **listed, "sigma": json.dumps(info.sigma), "noise": info.noise, "arch": info.arch, "dataset": info.dataset,
        "info": json.dumps(described),
    }  # fmt: skip


def _as_onnx(model: Model) -> tuple[bytes, Logits]:
    exported = export_onnx(model.classifier, model.info.input_shape, metadata(model.info))
    return exported, run_onnx(exported)


def _as_program(model: Model) -> tuple[bytes, Logits]:
    """A program of torch.export; its metadata are files of the archive, by their names."""
    program = export_program(model.classifier, model.info.input_shape)
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files=metadata(model.info))
    return buffer.getvalue(), program.module()
