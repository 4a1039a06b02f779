"""Side-by-side measurements of certification, as ratios. Run it alone on the machine:

python tests/benchmarks/certification.py speed                 engine against bare forward and classic loop
python tests/benchmarks/certification.py rules RUN [options]   stopping rules against fixed n on real images
python tests/benchmarks/certification.py simulate LOG SIGMA    --radii on votes drawn as a log of fixed n suggests
python tests/benchmarks/certification.py exact                 exact arithmetic against noise in floating point
python tests/benchmarks/certification.py agree RUN [options]   certified accuracies in exact and in float arithmetic
python tests/benchmarks/certification.py memory                peak memory at n = 10,000 and n = 1,000,000
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn

from smoothctl import Assumptions, load_model
from smoothctl.base.memory import keep_freed
from smoothctl.base.streams import Stream
from smoothctl.hooks.backends import Classifier
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import Certificate
from smoothctl.images.datasets import open_split, pixels
from smoothctl.models.classifier import build_classifier
from smoothctl.records.log import read_log
from smoothctl.smoothing.backends import automatic_batch_size, make_ready
from smoothctl.smoothing.bounds import clopper_pearson_lower
from smoothctl.smoothing.procedure import Procedure
from smoothctl.smoothing.sampling import Rule, Sampler
from tests.procedures import begin, procedure

CPU = torch.device("cpu")
GAUSSIAN = registry().find("noise", "gaussian").value
CLASSIC_BATCH = 1000


def classic_votes(model: nn.Module, x: Tensor, sigma: float, count: int) -> np.ndarray:
    """The loop that this field's code has copied since 2019: one image, batches of 1000, counting in Python."""
    counts = np.zeros(10, dtype=int)
    with torch.no_grad():
        while count > 0:
            size = min(CLASSIC_BATCH, count)
            count -= size
            batch = x.repeat((size, 1, 1, 1))
            predictions = model(batch + torch.randn_like(batch) * sigma).argmax(1)
            for prediction in predictions.cpu().numpy():
                counts[prediction] += 1
    return counts


def least_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The least of several times: what the machine's other work disturbs least."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def resnet20() -> nn.Module:
    torch.manual_seed(0)
    model = build_classifier("resnet20", 10, (3, 32, 32), mean=(0.5,) * 3, std=(0.25,) * 3)
    return model.eval().requires_grad_(False)


def speed() -> None:
    """Microseconds per noise sample of a 32x32 image under ResNet-20, and ratios to the bare forward pass."""
    model, x, samples = resnet20(), torch.rand(3, 32, 32), 4000
    classic = least_seconds(lambda: classic_votes(model, x, 0.25, samples), 3) / samples
    print(f"classic loop: {1e6 * classic:.0f} us a sample")
    keep_freed()  # as the command line does; the classic loop runs as it is published
    for backend in ("eager", "onnxruntime"):
        size = automatic_batch_size((3, 32, 32), CPU)
        ready = make_ready(model, (3, 32, 32), CPU, size, backend=backend)  # type: ignore[arg-type]
        engine, bare, ratio = interleaved(ready, x, size)
        print(
            f"{backend}: bare forward {1e6 * bare:.0f} us, engine {1e6 * engine:.0f} us a sample; "
            f"engine / bare = {ratio:.3f}, classic / engine = {classic / engine:.2f}"
        )


def interleaved(ready: Classifier, x: Tensor, size: int) -> tuple[float, float, float]:
    """Seconds a sample of the engine and of the bare forward pass, and their ratio, measured in turns."""
    batches, rounds = 40, 5
    samples = batches * size
    make = begin(GAUSSIAN, 0.25, n=samples // 2 - 100)  # two images fill the batches exactly
    sampler: Sampler[Certificate] = Sampler(ready, GAUSSIAN, 0.25, 0, CPU, size)
    batch = torch.rand(size, *x.shape)
    engine, bare = [], []
    for _ in range(rounds):
        engine.append(least_seconds(lambda: list(sampler.run([(0, x), (1, x)], lambda index: make(-1))), 1) / samples)
        bare.append(least_seconds(lambda: [ready.logits(batch) for _ in range(batches)], 1) / samples)
    return min(engine), min(bare), float(np.median(np.array(engine) / np.array(bare)))


def exact(rounds: int = 5) -> None:
    """The engine with exact arithmetic over the engine with float noise, measured in turns."""
    torch.manual_seed(0)
    lenet = build_classifier("lenet", 10, (1, 28, 28)).eval().requires_grad_(False)
    for name, model, shape in (("LeNet, 1x28x28", lenet, (1, 28, 28)), ("ResNet-20, 3x32x32", resnet20(), (3, 32, 32))):
        size = automatic_batch_size(shape, CPU)
        ready = make_ready(model, shape, CPU, size, backend="eager")
        x = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(0)).float() / 255
        for sigma in (0.25, 1.0):
            make = begin(GAUSSIAN, sigma, n=2 * size)
            runs = [Sampler(ready, GAUSSIAN, sigma, 0, CPU, size, levels=levels) for levels in (None, 255)]
            for each in runs:  # the probe and the law are once a job
                seconds(each, x, make)
            times = [[seconds(each, x, make) for each in runs] for _ in range(rounds)]
            floats, integers = np.array(times).T
            print(
                f"{name}, sigma {sigma:g}: exact / float = {np.median(integers / floats):.3f} "
                f"(least times: {integers.min() / floats.min():.3f})",
                flush=True,
            )


def seconds(sampler: Sampler[Certificate], x: Tensor, make: Callable[[int], Rule[Certificate]]) -> float:
    """The time that one image takes."""
    return least_seconds(lambda: list(sampler.run([(1, x)], lambda index: make(-1))), 1)


class Job:
    """A model and the images of its dataset that the arguments choose."""

    def __init__(self, arguments: argparse.Namespace):
        self.model = load_model(arguments.model, given=Assumptions(arch=arguments.arch))
        self.info = info = self.model.info
        self.images = open_split(registry().find("dataset", info.dataset).value, "test", arguments.data)
        self.indices = list(range(0, len(self.images), arguments.every))[: arguments.max]
        self.labels = np.array([self.images[index][1] for index in self.indices])
        self.size = automatic_batch_size(info.input_shape, CPU)
        self.ready = make_ready(self.model.classifier, info.input_shape, CPU, self.size, backend="auto")
        print(f"{arguments.model}: {info.arch} on {info.dataset}, sigma {info.sigma:g}, {len(self.indices)} images")
        print(f"backend {self.ready.backend}")

    def certified(self, chosen: Procedure, levels: int | None = None) -> tuple[list[Certificate], int]:
        """Certificates in the order of the indices, and how often the base classifier was evaluated."""
        make = chosen.begin(GAUSSIAN, self.info.sigma)
        batches: list[int] = []
        sampler: Sampler[Certificate] = Sampler(
            self.ready, GAUSSIAN, self.info.sigma, 0, CPU, self.size, batches.append, levels=levels
        )
        numbered = ((index, pixels(self.images, index)) for index in self.indices)
        decided = sorted(sampler.run(numbered, lambda index: make(-1)), key=lambda item: item.index)
        return [item.outcome for item in decided], sum(batches)


def rules(arguments: argparse.Namespace) -> None:
    """Base-classifier evaluations, certified accuracy and ACR of each stopping rule on one model."""
    job = Job(arguments)
    info, indices, labels = job.info, job.indices, job.labels
    x = pixels(job.images, indices[0])

    def classic_seconds() -> float:
        return least_seconds(lambda: classic_votes(job.model.classifier, x, info.sigma, 3000), 3) / 3000 * 100_100

    classic = classic_seconds()  # as it is published
    keep_freed()  # as the command line does
    kept = classic_seconds()
    grid = tuple(float(radius) for radius in np.arange(0, 3.8 * info.sigma, 0.25))
    every_rule: dict[str, tuple[str, dict[str, object]]] = {
        "fixed": ("fixed", {}),
        "radius": (f"--radii {arguments.radius:g}", {"radii": (arguments.radius,)}),
        "grid": ("--radii on a 0.25 grid", {"radii": grid}),
        "precise": ("--budget precise", {"budget": "precise"}),
        "fast": ("--budget fast", {"budget": "fast"}),
    }
    reference = None if arguments.fixed is None else from_log(arguments.fixed, indices)
    for rule in arguments.rules.split(","):
        name, values = every_rule[rule]
        start = time.perf_counter()
        certificates, evaluations = job.certified(procedure(**values))
        seconds = (time.perf_counter() - start) / len(indices)
        pairs = zip(certificates, labels, strict=True)
        proved = np.array([item.radius if item.predict == label else -1 for item, label in pairs])
        if name == "fixed":
            reference = proved
        line = f"{name}: {100_100 * len(indices) / evaluations:.1f} times fewer evaluations, {seconds:.2f} s an image, "
        line += f"{classic / seconds:.0f} times faster than the classic loop "
        line += f"({kept / seconds:.0f} if that keeps freed memory too)"
        if reference is not None:
            line += compared(proved, reference, values.get("radii"))
        print(line, flush=True)


def agree(arguments: argparse.Namespace) -> None:
    """Certified accuracies of the same images with noise in exact arithmetic and in floating point, n = 1,000."""
    job = Job(arguments)
    info, indices = job.info, job.indices
    radii = np.arange(0, 2.2 * info.sigma, info.sigma / 2)
    proved = []
    for levels in (255, None):
        found, _ = job.certified(procedure(n=1000), levels)
        right = np.array([item.predict for item in found]) == job.labels
        reached = np.where(right, [item.radius for item in found], -1)
        proved.append(reached[:, None] >= radii)
        accuracies = ", ".join(
            f"{100 * share:.1f} % at {r:g}" for share, r in zip(proved[-1].mean(0), radii, strict=True)
        )
        print(f"{'exact' if levels else 'float'}: {accuracies}; ACR {np.maximum(reached, 0).mean():.4f}")
    gained, lost = (proved[0] & ~proved[1]).sum(), (proved[1] & ~proved[0]).sum()
    p = stats.binomtest(int(gained), int(gained + lost)).pvalue if gained + lost else 1.0
    print(
        f"of {len(indices)} images at {len(radii)} radii: {gained} by exact only, {lost} by float only "
        f"(sign test {p:.2f})"
    )


def from_log(path: Path, indices: list[int]) -> np.ndarray:
    """What ``smoothctl certify`` with fixed n proved of these images: radii, -1 where the class is wrong."""
    rows = {row.idx: row for row in read_log(path).rows}
    return np.array([rows[index].radius if rows[index].correct else -1 for index in indices])


def compared(proved: np.ndarray, reference: np.ndarray, radii: object) -> str:
    """What a rule changes: certified accuracy at its radii, or ACR."""
    if radii:
        changes = [100 * (np.mean(proved >= r) - np.mean(reference >= r)) for r in radii]  # type: ignore[attr-defined]
        return f"; certified accuracy changes by {', '.join(f'{change:+.2f}' for change in changes)} points"
    acr, full = np.maximum(proved, 0).mean(), np.maximum(reference, 0).mean()
    return f"; ACR {acr:.4f} against {full:.4f} ({100 * (acr / full - 1):+.2f} %)"


def simulate(path: Path, sigma: float, every: int) -> None:
    """What ``--radii R`` costs and loses, if the images of a log of n = 100,000 vote with the rates that it found."""
    rows = read_log(path).rows[::every]
    right = np.array([row.correct for row in rows], bool)
    rates = success_rates(np.array([row.radius for row in rows]) / sigma, np.array([row.predict for row in rows]))
    reached = GAUSSIAN.radius(clopper_pearson_lower(100_000, 100_000, 0.001), sigma)
    for radius in np.arange(0, reached, 0.25):
        proved, evaluations = [], []
        for options in ({}, {"radii": (float(radius),)}):
            make, draws = begin(GAUSSIAN, sigma, **options), np.random.default_rng(len(proved))
            certificates = [voted(make(-1), rate, draws) for rate in rates]
            proved.append(right & np.array([item.predict >= 0 and item.radius >= radius for item in certificates]))
            evaluations.append(sum(sum(item.selection) + item.n for item in certificates))
        fixed, sequential = (100 * each.mean() for each in proved)
        print(
            f"{path.name} at {radius:g}: {evaluations[0] / evaluations[1]:.1f} times fewer evaluations, certified "
            f"accuracy {fixed:.2f} % with fixed n, {sequential - fixed:+.2f} points",
            flush=True,
        )


def success_rates(scaled: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """p_A of images, estimated from the radii over sigma that 100,000 votes proved; abstaining means below 1/2."""
    votes = np.arange(50_000, 100_001)
    place = np.searchsorted(clopper_pearson_lower(votes, 100_000, 0.001), stats.norm.cdf(scaled) - 1e-9)
    rates = votes[np.minimum(place, len(votes) - 1)] / 100_000
    return np.where(predicted < 0, 0.45, np.minimum(rates, 1 - 3e-6))


def voted(rule: Rule[Certificate], rate: float, draws: np.random.Generator) -> Certificate:
    """The outcome of a rule if one class of three gets each vote with this probability."""
    votes = {stream: np.zeros(3, np.int64) for stream in Stream}
    request = next(rule)
    while True:
        counts = votes[request.stream]
        counts += draws.multinomial(request.total - counts.sum(), [rate, (1 - rate) / 2, (1 - rate) / 2])
        try:
            request = rule.send(counts.copy())
        except StopIteration as stop:
            decided: Certificate = stop.value
            return decided


def memory() -> None:
    """Peak resident memory of certifying one image, in processes of their own."""
    code = (
        "import resource, torch, sys; from smoothctl import certify\n"
        "net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8 * 6 * 6, 10))\n"
        "certify(net, torch.rand(1, 3, 8, 8), sigma=0.25, n=int(sys.argv[1]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = {}
    for n in (10_000, 1_000_000):
        done = subprocess.run([sys.executable, "-c", code, str(n)], capture_output=True, text=True, check=True)
        peaks[n] = int(done.stdout) / 1024
    print("; ".join(f"n = {n:,}: {peak:.0f} MiB" for n, peak in peaks.items()))
    print(f"ratio {peaks[1_000_000] / peaks[10_000]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("speed")
    commands.add_parser("memory")
    commands.add_parser("exact")
    on_images = argparse.ArgumentParser(add_help=False)
    on_images.add_argument("model", type=Path)
    on_images.add_argument("--arch", help="the user's own module, if the model is one")
    on_images.add_argument("--data", type=Path)
    on_images.add_argument("--every", type=int, default=1)
    on_images.add_argument("--max", type=int, default=200)
    commands.add_parser("agree", parents=[on_images])
    options = commands.add_parser("rules", parents=[on_images])
    options.add_argument("--radius", type=float, default=0.5)
    options.add_argument("--rules", default="fixed,radius,grid,precise,fast", help="which, in this order")
    options.add_argument(
        "--fixed", type=Path, help="a log of `smoothctl certify` with n = 100,000, instead of that run"
    )
    options = commands.add_parser("simulate")
    options.add_argument("log", type=Path)
    options.add_argument("sigma", type=float)
    options.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    if arguments.command in ("rules", "agree"):
        {"rules": rules, "agree": agree}[arguments.command](arguments)
    elif arguments.command == "simulate":
        simulate(arguments.log, arguments.sigma, arguments.every)
    else:
        {"speed": speed, "memory": memory, "exact": exact}[arguments.command]()


if __name__ == "__main__":
    main()
