"""``smoothctl transfer``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from smoothctl.cli import options, training

NAME = "transfer"
EXAMPLES = (
    "Examples: `smoothctl transfer --teacher runs/teacher --student lenet --out runs/student`; "
    "`smoothctl transfer --teacher r110.pt --student regnetx -o outputs=softmax`"
)


@options.shared(training.Training)
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
    sigma: Annotated[
        float | None, options.option("--sigma", help="Scale of the noise, above 0. [default: the teacher's]")
    ] = None,
    teacher_device: Annotated[
        str | None, options.option("--teacher-device", help="Device of the teacher. [default: the student's]")
    ] = None,
    teacher_precision: Annotated[
        str, options.option("--teacher-precision", help="Of the teacher: fp32, tf32, bf16 or fp16.")
    ] = "fp32",
    teacher_backend: Annotated[
        str, options.option("--teacher-backend", help="How the teacher is evaluated, as --backend of certify.")
    ] = "auto",
    **values: Any,
) -> None:
    """Transfer certified robustness from a teacher to a student at the cost of ordinary training.

    The student learns the teacher's answers on noisy images (CRT). Dataset, sigma and noise come
    from the teacher's file; the student's file records the chain of teachers.
    """
    from smoothctl.checkpoint import load_model
    from smoothctl.errors import UsageError
    from smoothctl.models import find_architecture
    from smoothctl.plugins import registry
    from smoothctl.runtime import choose_device

    chosen = registry().find("method", method).value
    if not (chosen.needs_teacher or chosen.takes_teacher):
        raise UsageError(f"--method {method} does not use a teacher; use: smoothctl train --method {method}")
    find_architecture(student)
    taught = {"arch": teacher_arch, "arch_option": None, "normalize": teacher_normalize, "state_key": state_key}
    model = load_model(teacher, choose_device(values["device"]), options.assumptions(taught, dataset))
    evaluated = {"precision": teacher_precision, "backend": teacher_backend}
    values |= {"sigma": sigma, "teacher_device": teacher_device, "teacher": evaluated}
    training.run_training(values, student, dataset or model.info.dataset, method, model)
