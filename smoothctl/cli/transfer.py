"""``smoothctl transfer``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from smoothctl.cli import options, training

NAME = "transfer"
EXAMPLES = (
    "Examples: `smoothctl transfer --teacher runs/teacher --student lenet --out runs/student`; "
    "`smoothctl transfer --teacher r110.pt --student regnetx -o outputs=softmax`"
)


def command(
    teacher: Annotated[Path, options.option("--teacher", metavar="MODEL", help="Robust model file or run directory.")],
    student: Annotated[str, options.option("--student", metavar="ARCH", help="Architecture of the student.")],
    method: Annotated[str, options.option("--method", help="Training objective that uses a teacher.")] = "crt",
    dataset: Annotated[str | None, options.option("--dataset", help="Dataset. [default: the teacher's]")] = None,
    teacher_arch: Annotated[
        str | None, options.option("--teacher-arch", help="Architecture of a teacher whose file does not say it.")
    ] = None,
    teacher_normalize: Annotated[
        str | None, options.option("--teacher-normalize", help="Its input layer, as --normalize of certify.")
    ] = None,
    state_key: options.StateKey = None,
    data: options.Data = None,
    download: options.Download = False,
    sigma: Annotated[
        float | None, options.option("--sigma", help="Scale of the noise, above 0. [default: the teacher's]")
    ] = None,
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
    """Transfer certified robustness from a teacher to a student at the cost of ordinary training.

    The student learns the teacher's answers on noisy images (CRT). Dataset, sigma and noise come
    from the teacher's file; the student's file records the chain of teachers.
    """
    values = dict(locals())
    from smoothctl.checkpoint import load_model
    from smoothctl.errors import UsageError
    from smoothctl.models import find_architecture
    from smoothctl.plugins import registry
    from smoothctl.runtime import choose_device

    if not registry().find("method", method).value.needs_teacher:
        raise UsageError(f"--method {method} does not use a teacher; use: smoothctl train --method {method}")
    find_architecture(student)
    taught = {"arch": teacher_arch, "arch_option": None, "normalize": teacher_normalize, "state_key": state_key}
    model = load_model(teacher, choose_device(device), options.assumptions(taught, dataset))
    training.run_training(values, student, dataset or model.info.dataset, method, model)
