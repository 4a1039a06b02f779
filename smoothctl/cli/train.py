"""``smoothctl train``"""

from __future__ import annotations

from typing import Annotated, Any

from smoothctl.cli import options, outcomes, training

NAME = "train"
EXAMPLES = (
    "Examples: `smoothctl train --method gaussian --arch resnet20 --dataset digits --sigma 0.25 --out runs/teacher`; "
    "`smoothctl train --dataset cifar10 --data cifar10.npz --arch r110 --epochs 30 --dry-run`"
)


@options.shared(training.Training)
def command(
    method: Annotated[
        str, options.option("--method", help="Training objective; `smoothctl plugins` lists them.")
    ] = "gaussian",
    arch: Annotated[str | None, options.option("--arch", help="Architecture. [default: the recipe's]")] = None,
    dataset: Annotated[str, options.option("--dataset", help="Dataset; `smoothctl plugins` lists them.")] = "digits",
    sigma: options.Sigma = None,
    **values: Any,
) -> None:
    """Train a base classifier for randomized smoothing.

    What is not given comes from the method's published recipe for the dataset, or from the
    dataset's own. Noise is added to pixels in [0,1], never clipped, before the normalising first
    layer. The same command goes on with a run that was stopped.
    """
    require_no_teacher(method)
    outcome = training.run_training({**values, "sigma": sigma}, arch, dataset, method)
    outcomes.show([outcome], values["json"])


def require_no_teacher(method: str) -> None:
    """Raise UsageError for a method that cannot be used without a teacher."""
    from smoothctl.base.errors import UsageError
    from smoothctl.hooks.registry import registry

    if registry().find("method", method).value.needs_teacher:
        raise UsageError(f"--method {method} needs a teacher; use: smoothctl transfer --teacher MODEL --student ARCH")
