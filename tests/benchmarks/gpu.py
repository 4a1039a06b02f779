"""Certification and training on one GPU, side by side with the classic loop, within a given time (see gpu.sh).

    python -m tests.benchmarks.gpu DIR [--seconds 400]

Writes DIR/gpu.json and DIR/gpu.md after every measurement, so that a run that is cut short leaves what it has.
On a machine without a GPU a few small networks are measured on the CPU.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from smoothctl import ArrayImages
from smoothctl.base.devices import versions
from smoothctl.base.draws import Draws
from smoothctl.base.errors import SmoothctlError
from smoothctl.base.memory import keep_freed
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import Certificate
from smoothctl.models.classifier import build_classifier
from smoothctl.smoothing.arithmetic import arithmetic_for
from smoothctl.smoothing.backends import automatic_batch_size, make_ready
from smoothctl.smoothing.sampling import Sampler
from tests.benchmarks.certification import GAUSSIAN, classic_votes
from tests.benchmarks.training import OPTIONS, Stepper, load_teacher
from tests.procedures import begin

SIGMA = 0.25
NETWORKS = [("resnet20", 32), ("resnet110", 32), ("regnetx_200mf", 32), ("vit", 32), ("torchvision/resnet50", 224)]
WAYS = [(p, b) for b in ("eager", "compile") for p in ("fp32", "tf32", "bf16")]
METHODS = ["gaussian", "crt", "consistency", "smoothmix"]

Row = dict[str, Any]
Measurement = tuple[str, Callable[[], Row]]


def seconds(work: Callable[[], object], device: torch.device, repeats: int = 3) -> float:
    """The least of several times, after a first that does not count, each until the device is done."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def network(arch: str, side: int, device: torch.device) -> nn.Module:
    torch.manual_seed(0)
    return build_classifier(arch, 10, (3, side, side)).to(device).eval().requires_grad_(False)


def classic(arch: str, side: int, samples: int, device: torch.device) -> Row:
    """Microseconds a noise sample in the published loop."""
    model, x = network(arch, side, device), torch.rand(3, side, side, device=device)
    taken = seconds(lambda: classic_votes(model, x, SIGMA, samples), device, 2)
    return {"us_per_copy": 1e6 * taken / samples}


def engine(arch: str, side: int, samples: int, device: torch.device, precision: Any, backend: Any) -> Row:
    """Microseconds a noise sample of one image at a fixed n, over a bare pass of full batches; and the peak memory."""
    size = automatic_batch_size((3, side, side), device)
    ready = make_ready(network(arch, side, device), (3, side, side), device, size, precision, backend)
    levels = 255
    make = begin(GAUSSIAN, SIGMA, n0=100, n=samples)
    sampler: Sampler[Certificate] = Sampler(ready, GAUSSIAN, SIGMA, 0, device, size, levels=levels)
    x = torch.randint(0, 256, (3, side, side)).float() / levels
    batch = torch.rand(size, 3, side, side, device=device)
    bare = seconds(lambda: ready.logits(batch), device) / size
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    taken = seconds(lambda: list(sampler.run([(0, x)], lambda index: make(-1))), device, 2) / (samples + 100)
    row = {"backend": ready.backend, "us_per_copy": 1e6 * taken, "bare_us": 1e6 * bare, "over_bare": taken / bare}
    if device.type == "cuda":
        row["peak_mib"] = torch.cuda.max_memory_allocated() / 2**20
    return row


def radii(arch: str, side: int, device: torch.device) -> Row:
    """Milliseconds an image with ``--radii`` of an untrained network, whose images are given up early."""
    size = automatic_batch_size((3, side, side), device)
    ready = make_ready(network(arch, side, device), (3, side, side), device, size)
    make = begin(GAUSSIAN, SIGMA, radii=(0.25,))
    sampler: Sampler[Certificate] = Sampler(ready, GAUSSIAN, SIGMA, 0, device, size, levels=255)
    images = [(index, torch.randint(0, 256, (3, side, side)).float() / 255) for index in range(10)]
    taken = seconds(lambda: list(sampler.run(images, lambda index: make(-1))), device, 2)
    return {"ms_per_image": 1e3 * taken / len(images)}


def noise(side: int, levels: int | None, device: torch.device) -> Row:
    """Nanoseconds a pixel of noise that is drawn, alone."""
    arithmetic, shape = arithmetic_for(GAUSSIAN, SIGMA, levels), (100, 3, side, side)
    draws = Draws(0, 1, device=device)
    return {"ns_per_pixel": 1e9 * seconds(lambda: arithmetic.sample(shape, draws), device) / math.prod(shape)}


def training(arch: str, method: str, precision: str, device: torch.device) -> Row:
    """Milliseconds a step of a batch of 128."""
    pixels = np.random.default_rng(0).integers(0, 256, (1024, 32, 32, 3), dtype=np.uint8)
    images = ArrayImages(pixels, np.arange(1024) % 10)
    asked = argparse.Namespace(
        arch=arch, teacher_arch=arch, dataset="cifar10", batch_size=128, images=images, device=device,
        precision=precision,
    )  # fmt: skip
    teacher = load_teacher(asked) if registry().find("method", method).value.needs_teacher else None
    stepper = Stepper(method, OPTIONS.get(method, {}), asked, teacher)
    return {"ms_per_step": 1e3 * seconds(lambda: stepper.step(False), device, 5)}


def measurements(device: torch.device) -> Iterator[Measurement]:
    """What is measured, the most telling first."""
    gpu = device.type == "cuda"
    samples = 100_000 if gpu else 500
    networks = NETWORKS if gpu else [("resnet20", 32)]
    ways = WAYS if gpu else [("fp32", "eager"), ("fp32", "onnxruntime")]
    for levels in (None, 255):
        yield f"noise, {'exact' if levels else 'float'}, 32", partial(noise, 32, levels, device)
    for arch, side in networks:
        many = max(500, samples * 32**2 // side**2 // (5 if arch != "resnet20" else 1))
        yield f"classic loop, {arch}, {side}", partial(classic, arch, side, many, device)
        for precision, backend in ways:
            name = f"engine, {arch}, {side}, {precision}, {backend}"
            yield name, partial(engine, arch, side, many, device, precision, backend)
    yield "radii 0.25, resnet20, 32", partial(radii, "resnet20", 32, device)
    for method in METHODS if gpu else METHODS[:2]:
        for precision in ("fp32", "tf32", "bf16") if gpu else ("fp32",):
            yield f"training, resnet20, {method}, {precision}", partial(training, "resnet20", method, precision, device)


def write(folder: Path, machine: Row, rows: list[Row]) -> None:
    """The JSON and the page."""
    (folder / "gpu.json").write_text(json.dumps({"machine": machine, "measured": rows}, indent=2) + "\n")
    lines = [f"# {machine['device']}", "", "| what | figures |", "|---|---|"]
    for row in rows:
        figures = (
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
        )
        lines.append(f"| {row['what']} | {', '.join(figure for figure in figures if not figure.startswith('what '))} |")
    (folder / "gpu.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=400)
    arguments = parser.parse_args()
    keep_freed()
    registry()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    machine, rows = {"device": name, "versions": versions()}, []
    start = time.monotonic()
    for what, measure in measurements(device):
        row: Row = {"what": what}
        if time.monotonic() - start > arguments.seconds:
            row["left out"] = "no time"
        else:
            try:
                row |= measure()
            except (SmoothctlError, RuntimeError) as error:
                row["failed"] = " ".join(str(error).split())[:200]
        rows.append(row)
        print(row, flush=True)
        write(arguments.folder, machine, rows)


if __name__ == "__main__":
    main()
