"""``smoothctl train``"""

from __future__ import annotations

from typing import Annotated

from smoothctl.cli import options, training

NAME = "train"
EXAMPLES = (
    "Examples: `smoothctl train --method gaussian --arch resnet20 --dataset digits --sigma 0.25 --out runs/teacher`; "
    "`smoothctl train --dataset cifar10 --data cifar10.npz --arch r110 --epochs 30 --dry-run`"
)


def command(
    method: Annotated[
        str, options.option("--method", help="Training objective; `smoothctl plugins` lists them.")
    ] = "gaussian",
    arch: Annotated[str | None, options.option("--arch", help="Architecture. [default: the recipe's]")] = None,
    dataset: Annotated[str, options.option("--dataset", help="Dataset; `smoothctl plugins` lists them.")] = "digits",
    data: options.Data = None,
    download: options.Download = False,
    sigma: options.Sigma = None,
    noise: options.NoiseName = None,
    option: training.MethodOptions = None,
    arch_option: options.ArchOptions = None,
    epochs: training.Epochs = None,
    batch_size: training.BatchSize = None,
    lr: training.Rate = None,
    momentum: training.Momentum = None,
    weight_decay: training.WeightDecay = None,
    milestones: training.Milestones = None,
    gamma: training.Gamma = None,
    augment: training.Augment = None,
    normalize: options.Normalize = None,
    size: options.Size = None,
    heldout_max: training.HeldoutMax = 1000,
    workers: training.Workers = 0,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    out: training.Out = None,
    overwrite: options.Overwrite = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Train a base classifier for randomized smoothing.

    What is not given comes from the method's published recipe for the dataset, or from the
    dataset's own. Noise is added to pixels in [0,1], never clipped, before the normalising first
    layer. The same command goes on with a run that was stopped.
    """
    values = dict(locals())
    from smoothctl.errors import UsageError
    from smoothctl.plugins import registry

    if registry().find("method", method).value.needs_teacher:
        raise UsageError(f"--method {method} needs a teacher; use: smoothctl transfer --teacher MODEL --student ARCH")
    training.run_training(values, arch, dataset, method, teacher=None)
