"""Cost of a training step, side by side: every method against gaussian, and transfer against smoothmix.

    python tests/benchmarks/training.py methods [--arch lenet] [--data mnist.npz]
    python tests/benchmarks/training.py transfer [--arch resnet20] [--data cifar10.npz]
    python tests/benchmarks/training.py formats [--arch resnet20]

Steps of all methods take turns in one run, so that whatever slows the machine slows them alike; the
median over rounds is printed as a ratio. Without --data random images are used: the time is the same.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from smoothctl import ArrayImages, load_model
from smoothctl.base import memory
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import open_split
from smoothctl.training.batches import TrainingData
from smoothctl.training.execution import Execution
from smoothctl.training.run import fill_directory
from smoothctl.training.settings import TrainSettings, method_options
from smoothctl.training.trainer import Trainer

OPTIONS: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "stability": {},
    "consistency": {"m": 2},
    "smoothadv": {"m": 2, "steps": 4},
    "smoothmix": {"m": 2, "T": 4},
    "macer": {"k": 8},
    "cat-rs": {"m": 4, "steps": 4},
}


class Stepper:
    """One method's trainer, whose steps can be timed one by one."""

    def __init__(self, name: str, options: dict[str, Any], arguments: argparse.Namespace, teacher: Any = None):
        self.name = name
        method = registry().find("method", name).value
        dataset = registry().find("dataset", arguments.dataset).value
        chosen = method_options(method, options).model_dump(mode="json")
        settings = TrainSettings(
            method=name, options=chosen, arch=arguments.arch, dataset=dataset.name, batch_size=arguments.batch_size,
            epochs=1, lr=0.01, precision=arguments.precision,
        )  # fmt: skip
        data = TrainingData(dataset, arguments.images, arguments.images)
        self.trainer = Trainer(settings, data, Execution(arguments.device), teacher)
        self.trainer.model.train()
        self.batches = self.trainer.batches.of_epoch(0)
        self.seconds: list[float] = []

    def step(self, count: bool) -> None:
        """Do one step, drawing and reading its batch included; ``count`` keeps its time."""
        start = time.perf_counter()
        try:
            share, batch = next(self.batches)
        except StopIteration:
            self.batches = self.trainer.batches.of_epoch(0)
            share, batch = next(self.batches)
        self.trainer._step(share, batch, 0)
        if count:
            self.seconds.append(time.perf_counter() - start)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def take_turns(steppers: list[Stepper], rounds: int) -> None:
    for number in range(rounds + 2):
        for stepper in steppers:
            stepper.step(count=number >= 2)


def methods(arguments: argparse.Namespace) -> None:
    """Each method's step as a multiple of gaussian's, beside what its passes predict."""
    steppers = [Stepper(name, options, arguments) for name, options in OPTIONS.items()]
    passes = [stepper.trainer.estimate().passes for stepper in steppers]
    take_turns(steppers, arguments.rounds)
    base = steppers[0]
    print(f"{'method':14} {'options':28} {'ms/step':>8} {'ratio':>7} {'passes':>7} {'ratio/passes':>12}")
    for stepper, counted in zip(steppers, passes, strict=True):
        predicted = (counted["forward_passes"] + counted["backward_passes"]) / 2
        ratio = stepper.median / base.median
        options = ", ".join(f"{key}={value}" for key, value in OPTIONS[stepper.name].items())
        print(
            f"{stepper.name:14} {options:28} {1000 * stepper.median:8.1f} {ratio:7.2f} {predicted:7.2f} "
            f"{ratio / predicted:12.2f}"
        )


def transfer(arguments: argparse.Namespace) -> None:
    """CRT's step against gaussian's plus the teacher's forward pass, and smoothmix's against CRT's."""
    teacher = load_teacher(arguments)
    crt = Stepper("crt", {}, arguments, teacher)
    gaussian = Stepper("gaussian", {}, arguments)
    smoothmix = Stepper("smoothmix", {"T": 4, "m": 2, "eta": 5.0, "alpha": 0.5}, arguments)
    assert crt.trainer.taught is not None
    x = torch.rand(arguments.batch_size, *teacher.info.input_shape)
    forward: list[float] = []
    for number in range(arguments.rounds + 2):
        for stepper in (gaussian, crt, smoothmix):
            stepper.step(count=number >= 2)
        start = time.perf_counter()
        crt.trainer.taught.logits(x)
        forward.append(time.perf_counter() - start)
    taught = statistics.median(forward[2:])
    print(f"teacher {arguments.teacher_arch} by {crt.trainer.taught.backend}, student {arguments.arch}, "
          f"batch {arguments.batch_size}, {torch.get_num_threads()} threads")  # fmt: skip
    for name, seconds in (("gaussian", gaussian.median), ("teacher forward", taught), ("crt", crt.median),
                          ("smoothmix", smoothmix.median)):  # fmt: skip
        print(f"{name:16} {1000 * seconds:8.1f} ms/step")
    print(f"crt / (gaussian + teacher forward) = {crt.median / (gaussian.median + taught):.3f}")
    print(f"smoothmix / crt = {smoothmix.median / crt.median:.2f}")


def formats(arguments: argparse.Namespace) -> None:
    """Our step of gaussian against the bare step (forward, backward, SGD on a batch at hand), by memory format."""
    ours = Stepper("gaussian", {}, arguments)
    x, y = torch.rand(arguments.batch_size, *ours.trainer.shape), torch.randint(0, 10, (arguments.batch_size,))
    bare = {
        f"bare, {name}, {precision}": (_bare_step(arguments, layout, precision, x, y), [])
        for name, layout in (("contiguous", torch.contiguous_format), ("channels last", torch.channels_last))
        for precision in ("fp32", "bf16")
    }
    for number in range(arguments.rounds + 2):
        ours.step(count=number >= 2)
        for step, seconds in bare.values():
            start = time.perf_counter()
            step()
            if number >= 2:
                seconds.append(time.perf_counter() - start)
    print(f"{arguments.arch}, batch {arguments.batch_size}, {torch.get_num_threads()} threads")
    for name, (_, seconds) in bare.items():
        print(f"{name:28} {1000 * statistics.median(seconds):8.1f} ms/step")
    print(f"{'smoothctl, gaussian, fp32':28} {1000 * ours.median:8.1f} ms/step")


def _bare_step(
    arguments: argparse.Namespace, layout: torch.memory_format, precision: str, x: torch.Tensor, y: torch.Tensor
) -> Any:
    """A step as a textbook has it."""
    from smoothctl.models.classifier import build_classifier

    dataset = registry().find("dataset", arguments.dataset).value
    model = build_classifier(arguments.arch, 10, dataset.shape, initial=True).to(memory_format=layout).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    images = x.contiguous(memory_format=layout)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            logits = model(images)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits.float(), y).backward()
        optimizer.step()

    return step


def load_teacher(arguments: argparse.Namespace) -> Any:
    """A teacher with random weights: what it answers does not change what it costs."""
    import tempfile

    dataset = registry().find("dataset", arguments.dataset).value
    few = ArrayImages(arguments.images.images[:8], arguments.images.labels[:8])
    settings = TrainSettings(arch=arguments.teacher_arch, dataset=dataset.name, epochs=1, batch_size=8, lr=1e-9)
    with tempfile.TemporaryDirectory() as folder:
        fill_directory(settings, TrainingData(dataset, few, few), Path(folder) / "run", Execution(torch.device("cpu")))
        return load_model(Path(folder) / "run")


def main() -> None:
    memory.keep_freed()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["methods", "transfer", "formats"])
    parser.add_argument("--arch", default="resnet20")
    parser.add_argument("--teacher-arch", default="resnet20")
    parser.add_argument("--dataset", default="cifar10")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    arguments = parser.parse_args()
    dataset = registry().find("dataset", arguments.dataset).value
    if arguments.data is not None:
        arguments.images = open_split(dataset, "train", arguments.data)
    else:
        channels, height, width = dataset.shape
        random = np.random.default_rng(0)
        pixels = random.integers(0, 256, (2048, height, width, channels), dtype=np.uint8)
        arguments.images = ArrayImages(pixels, random.integers(0, 10, 2048))
    {"methods": methods, "transfer": transfer, "formats": formats}[arguments.what](arguments)


if __name__ == "__main__":
    main()
