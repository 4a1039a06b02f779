"""``smoothctl transfer``"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from smoothctl.base import console
from smoothctl.cli import options, outcomes, train, training

if TYPE_CHECKING:
    from smoothctl.cli.outcomes import Outcome
    from smoothctl.models.checkpoint import Model
    from smoothctl.records.cost import Link

NAME = "transfer"
EXAMPLES = (
    "Examples: `smoothctl transfer --teacher runs/teacher --student lenet --out runs/student`; "
    "`smoothctl transfer --teacher r110.pt --student regnetx -o outputs=softmax`; "
    "`smoothctl transfer --teacher r110.pt --chain resnext29,dla,regnetx,vit --out runs/chain`"
)


@options.shared(training.Training)
def command(
    teacher: Annotated[
        list[Path] | None,
        options.option(
            "--teacher",
            metavar="MODEL",
            help="Robust model file or run directory; several are averaged into one teacher. Repeatable.",
        ),
    ] = None,
    teacher_from: Annotated[
        Path | None,
        options.option(
            "--teacher-from",
            metavar="FILE.toml",
            help="No teacher at hand: first train one by these settings of `smoothctl train`.",
        ),
    ] = None,
    student: Annotated[
        str | None, options.option("--student", metavar="ARCH", help="Architecture of the student.")
    ] = None,
    chain: Annotated[
        str | None,
        options.option(
            "--chain",
            metavar="ARCH,ARCH,...",
            help="Several students, each taught by the one before; --out holds a run directory for each.",
        ),
    ] = None,
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
    from smoothctl.base.errors import UsageError
    from smoothctl.hooks.registry import registry

    chosen = registry().find("method", method).value
    if not (chosen.needs_teacher or chosen.takes_teacher):
        raise UsageError(f"--method {method} does not use a teacher; use: smoothctl train --method {method}")
    students = _students(student, chain)
    evaluated = {"precision": teacher_precision, "backend": teacher_backend}
    values |= {"sigma": sigma, "teacher_device": teacher_device, "teacher": evaluated}
    done: list[Outcome] = []
    if teacher_from is not None and not teacher:
        trained = _train_teacher(teacher_from, values)
        if values["dry_run"]:
            outcomes.show([trained], values["json"])
            return
        done.append(trained)
        teacher = [trained.out]
    elif not teacher or teacher_from is not None:
        raise UsageError("give the teacher, either by --teacher MODEL or by --teacher-from FILE.toml")
    taught = {"arch": teacher_arch, "arch_option": None, "normalize": teacher_normalize, "state_key": state_key}
    model, lineage = _load(teacher, taught, dataset, values)
    values["teachers"] = teacher
    done += _teach(students, model, lineage, dataset or model.info.dataset, method, values, chain is not None)
    outcomes.show(done, values["json"])


def _students(student: str | None, chain: str | None) -> list[str]:
    """The architectures to train one after the other; raises UsageError unless it is clear which."""
    from smoothctl.base.errors import UsageError
    from smoothctl.models.classifier import find_architecture

    if (student is None) == (chain is None):
        raise UsageError("give the student, either by --student ARCH or by --chain ARCH,ARCH,...")
    students = [student] if student is not None else [name.strip() for name in (chain or "").split(",")]
    for name in students:
        find_architecture(name)
    return students


def _train_teacher(settings: Path, values: dict[str, Any]) -> Outcome:
    """Train a teacher by a TOML file, on the data and device of the student unless the file says otherwise."""
    context = cast("typer.Context", _train_command().make_context(train.NAME, ["--config", str(settings)]))
    own = context.params
    for name in ("data", "download", "device", "workers"):
        if not options.was_given(context, name):
            own[name] = values[name]
    own["dry_run"] = values["dry_run"]
    console.note(f"the teacher, by {settings}:")
    train.require_no_teacher(own["method"])
    return training.run_training(own, own["arch"], own["dataset"], own["method"])


def _train_command() -> typer.core.TyperCommand:
    """``smoothctl train``, which reads and checks a file of its settings."""
    app = typer.Typer()
    app.command(train.NAME)(train.command)
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperCommand)
    return command


def _load(
    paths: Sequence[Path], taught: dict[str, Any], dataset: str | None, values: dict[str, Any]
) -> tuple[Model, list[Link]]:
    """The teacher, several models averaged if need be, and the runs that led to it."""
    from smoothctl.base.devices import choose_device
    from smoothctl.models.checkpoint import load_model
    from smoothctl.models.composition import combine
    from smoothctl.records import cost

    device = choose_device(values["device"])
    models = [load_model(path, device, options.assumptions(taught, dataset)) for path in paths]
    lineage = cost.union(_lineage(model) for model in models)
    return (models[0] if len(models) == 1 else combine(models)), lineage


def _lineage(model: Model) -> list[Link]:
    from smoothctl.models.checkpoint import lineage
    from smoothctl.records import cost

    named = [
        cost.Link(each.arch, each.method, each.sha256, generation=place) for place, each in enumerate(lineage(model))
    ]
    return cost.lineage_of(model.path, named)


def _teach(
    students: Sequence[str],
    teacher: Model,
    lineage: list[Link],
    dataset: str,
    method: str,
    values: dict[str, Any],
    chained: bool,
) -> list[Outcome]:
    """Train the students one after the other. A dry run plans each with the teacher that there is."""
    from smoothctl.models.checkpoint import load_model
    from smoothctl.models.classifier import canonical_arch

    done: list[Outcome] = []
    whole = values["out"] or Path("runs") / f"{dataset}-{method}-chain"
    for place, arch in enumerate(students, start=1):
        name = canonical_arch(arch).replace("/", "-").replace(":", "-")
        out = whole / f"{place}-{name}" if chained else values["out"]
        outcome = training.run_training({**values, "out": out}, arch, dataset, method, teacher, lineage)
        done.append(outcome)
        if place < len(students) and not values["dry_run"]:
            teacher = load_model(out, next(teacher.classifier.parameters()).device)
            lineage = _lineage(teacher)
    return done
