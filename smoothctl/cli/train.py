"""``smoothctl train``"""

from __future__ import annotations

from smoothctl.cli import options
from smoothctl.images.settings import DataSource
from smoothctl.training.settings import RunOptions, TrainSettings

NAME = "train"
EXAMPLES = (
    "Examples: `smoothctl train --method gaussian --arch resnet20 --dataset digits --sigma 0.25 --out runs/teacher`; "
    "`smoothctl train --dataset cifar10 --data cifar10.npz --arch r110 --epochs 30 --dry-run`"
)


@options.with_flags
def command(
    settings: TrainSettings,
    source: DataSource,
    run: RunOptions,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Train a base classifier for randomized smoothing.

    What is not given comes from the method's published recipe for the dataset, or from the
    dataset's own. Noise is added to pixels in [0,1], never clipped, before the normalization
    layer. The same command goes on with a run that was stopped.
    """
    from smoothctl.cli import outcomes
    from smoothctl.training.launch import plan_run, require_no_teacher

    require_no_teacher(settings.method)
    outcomes.show_runs([plan_run(settings, source, run)], dry_run, json)
