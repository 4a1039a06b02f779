"""How the base classifier is evaluated: precision and backend.

The function that is certified is the one that is evaluated here, so logs record both. Noise is drawn
and added in float32; lower precisions cast the sum.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from smoothctl.base import console
from smoothctl.base.devices import evaluating
from smoothctl.base.errors import UsageError
from smoothctl.smoothing.outputs import find_logits, input_dtype
from smoothctl.smoothing.settings import Backend, Precision

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
AGREEMENT = 1e-3
PROBES = 64
SIZES = [40, 17, 6, 1]


@dataclass(frozen=True)
class Classifier:
    """A base classifier made ready: ``logits`` takes pixels [B,C,H,W] in float32, noise included, to
    float32 logits [B,K]; ``backend`` and ``precision`` say how. ``own_threads``: not torch's."""

    logits: Callable[[Tensor], Tensor]
    backend: str
    precision: str
    own_threads: bool = False


def plain(model: nn.Module) -> Classifier:
    """Evaluate a module as it is, in eval mode and its own type (float32 as a rule); it is left as it was."""
    dtype = input_dtype(model)

    def logits(x: Tensor) -> Tensor:
        with evaluating(model):
            return find_logits(model(x.to(dtype))).float()

    return Classifier(logits, "eager", "fp32")


def make_ready(
    model: nn.Module,
    shape: tuple[int, int, int],
    device: torch.device,
    batch_size: int,
    precision: Precision = "fp32",
    backend: Backend = "auto",
) -> Classifier:
    """Choose how to evaluate a frozen module on images of this shape.

    ``auto`` takes ONNX Runtime on a CPU if it is installed and agrees with eager PyTorch on noisy
    probes, else eager PyTorch, channels last and with batch norm folded into convolutions. Raises UsageError for a
    backend that is not there or does not agree.
    """
    if device.type == "cpu" and precision in ("tf32", "fp16"):
        raise UsageError(f"--precision {precision} needs a GPU; on a CPU there are fp32 and bf16")
    if backend == "onnxruntime" and (device.type != "cpu" or precision != "fp32"):
        raise UsageError("--backend onnxruntime runs fp32 on a CPU here")
    reference = plain(model)
    probes = torch.rand(PROBES, *shape, generator=torch.Generator().manual_seed(0)).to(device)
    if backend in ("auto", "onnxruntime") and device.type == "cpu" and precision == "fp32":
        candidate = _onnxruntime(model, shape, required=backend == "onnxruntime")
        if candidate is not None and _agree(candidate, reference, probes, required=backend == "onnxruntime"):
            return candidate
    network = fold_batch_norm(model).to(DTYPES[precision]).to(memory_format=torch.channels_last)
    eager = _eager(network, precision)
    if precision == "fp32" and not _agree(eager, reference, probes, required=False):
        eager = reference
    if backend == "compile":
        return _compiled(network, precision, batch_size)
    return eager


def _eager(network: nn.Module, precision: str) -> Classifier:
    dtype = DTYPES[precision]

    def logits(x: Tensor) -> Tensor:
        with evaluating(network, tf32=precision == "tf32"):
            result: Tensor = network(x.to(dtype, memory_format=torch.channels_last))
            return result.float()

    return Classifier(logits, "eager", precision)


def _compiled(network: nn.Module, precision: str, batch_size: int) -> Classifier:
    """torch.compile, for batches of one size: smaller ones are filled up, so that it compiles once.

    Out of memory, it halves that size, as the sampler halves its batches.
    """
    dtype = DTYPES[precision]
    compiled = torch.compile(network)
    size = batch_size

    def logits(x: Tensor) -> Tensor:
        nonlocal size
        with evaluating(network, tf32=precision == "tf32"):
            missing = max(0, size - len(x))
            filled = torch.cat([x, x.new_zeros(missing, *x.shape[1:])]) if missing else x
            try:
                result: Tensor = compiled(filled.to(dtype, memory_format=torch.channels_last))
            except torch.OutOfMemoryError:
                size = max(1, size // 2)
                raise
            return result[: len(x)].float()

    return Classifier(logits, "compile", precision)


def _onnxruntime(model: nn.Module, shape: tuple[int, int, int], required: bool) -> Classifier | None:
    missing = [name for name in ("onnxruntime", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        if required:
            raise UsageError(f"--backend onnxruntime needs {' and '.join(missing)}: pip install 'smoothctl[onnx]'")
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    try:
        exported = _export(model, shape)
        session = onnxruntime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        if required:
            raise UsageError(f"--backend onnxruntime: this network cannot be exported ({reason})") from error
        return None
    name = session.get_inputs()[0].name

    def logits(x: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {name: x.numpy()})[0])

    return Classifier(logits, "onnxruntime", "fp32", own_threads=True)


def _export(model: nn.Module, shape: tuple[int, int, int]) -> bytes:
    """The network as ONNX, for batches of any size."""
    import contextlib
    import io
    import logging
    import warnings

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


def _agree(candidate: Classifier, reference: Classifier, probes: Tensor, required: bool) -> bool:
    """Whether logits agree with the reference on noisy probes, in batches of several sizes.

    Raises UsageError, or says that the backend is not used, if they do not, or cannot be computed: an exported
    network may hold the size of the batch that it was exported with.
    """
    expected = reference.logits(probes)
    try:
        got = torch.cat([candidate.logits(part) for part in probes.split(SIZES)])
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        return _refuse(candidate, f"cannot evaluate batches of every size ({reason})", required)
    if not torch.isfinite(expected).all():
        return not bool(torch.isfinite(got).all())  # the network is broken, which is said where it votes
    scale = max(1.0, float(expected.abs().max()))
    difference = float((got - expected).abs().max()) / scale
    if difference <= AGREEMENT:
        return True
    return _refuse(candidate, f"does not agree with PyTorch here (logits differ by {difference:.2g})", required)


def _refuse(candidate: Classifier, why: str, required: bool) -> bool:
    if required:
        raise UsageError(f"--backend {candidate.backend} {why}")
    console.note(f"{candidate.backend} {why}, so it is not used")
    return False


def fold_batch_norm(model: nn.Module) -> nn.Module:
    """A frozen copy with each batch norm folded into the convolution before it.

    A network that cannot be traced is only copied.
    """
    from torch.fx.experimental import optimization

    frozen = copy.deepcopy(model).eval().requires_grad_(False)
    try:
        folded: nn.Module = optimization.fuse(frozen)
    except Exception:
        return frozen
    return folded.eval().requires_grad_(False)


def automatic_batch_size(shape: tuple[int, int, int], device: torch.device) -> int:
    """A batch that keeps the device busy; it is halved if the memory does not suffice."""
    pixels = shape[0] * shape[1] * shape[2]
    images = 256 if device.type == "cpu" else 4096
    return max(16, min(4 * images, images * 3 * 32 * 32 // pixels))
