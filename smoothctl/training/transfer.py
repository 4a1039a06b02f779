"""Transfer: students that learn a robust teacher's answers, one or several in a chain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from smoothctl.base import console
from smoothctl.base.devices import choose_device
from smoothctl.base.errors import UsageError
from smoothctl.base.settings import keyword_settings, settings_from_toml
from smoothctl.hooks.registry import registry
from smoothctl.images.settings import DataSource
from smoothctl.models.checkpoint import Model, lineage, load_model
from smoothctl.models.classifier import canonical_arch, find_architecture
from smoothctl.models.composition import combine
from smoothctl.models.import_checkpoint import Assumptions
from smoothctl.records import cost
from smoothctl.records.cost import Link
from smoothctl.training.launch import PlannedRun, TrainedRun, plan_run, require_no_teacher
from smoothctl.training.settings import RunOptions, TeacherSettings, TeacherSource, TrainSettings, TransferSettings


@keyword_settings
def transfer(
    settings: TransferSettings, taught_by: TeacherSource, source: DataSource, run: RunOptions, teaching: TeacherSettings
) -> list[TrainedRun]:
    """Train one student or a chain of students from a teacher; a teacher that was trained first comes first.

    Dataset, sigma and noise come from the teacher unless they are given. Raises UsageError for what does not go
    together, and SmoothctlError if training fails.
    """
    return [planned.start() for planned in plan_transfer(settings, taught_by, source, run, teaching)]


def plan_transfer(
    settings: TransferSettings,
    taught_by: TeacherSource,
    source: DataSource,
    run: RunOptions,
    teaching: TeacherSettings,
    dry: bool = False,
) -> Iterator[PlannedRun]:
    """The runs of a transfer in their order; each has to be done before the next is asked for.

    ``dry``: nothing is going to be done, so that a chain's students are planned with the teacher that there is.
    """
    method = registry().find("method", settings.method).value
    if not (method.needs_teacher or method.takes_teacher):
        raise UsageError(
            f"`method={settings.method}` does not use a teacher; use: smoothctl train --method {settings.method}"
        )
    students = _students(settings, taught_by)
    paths = taught_by.teacher
    if taught_by.teacher_from is not None and not paths:
        planned = _plan_teacher(taught_by.teacher_from, source, run)
        yield planned
        if dry:
            return
        paths = (planned.path,)
    elif not paths or taught_by.teacher_from is not None:
        raise UsageError("give the teacher, either by `teacher=MODEL` or by `teacher_from=FILE.toml`")
    teacher, led = _load_teacher(paths, taught_by, settings, run)
    dataset = settings.dataset or teacher.info.dataset
    whole = run.out or Path("runs") / f"{dataset}-{settings.method}-chain"
    for place, arch in enumerate(students, start=1):
        wanted = TransferSettings(**{**settings.given(), "arch": arch, "dataset": dataset, "method": settings.method})
        name = canonical_arch(arch).replace("/", "-").replace(":", "-")
        place_of = run.model_copy(update={"out": whole / f"{place}-{name}"}) if taught_by.chain else run
        planned = plan_run(_as_train_settings(wanted), source, place_of, teacher, led, teaching, paths)
        yield planned
        if place < len(students) and not dry:
            teacher = load_model(planned.path, next(teacher.classifier.parameters()).device)
            led = _lineage(teacher)


def _as_train_settings(settings: TransferSettings) -> TrainSettings:
    return TrainSettings(**settings.given())


def _students(settings: TransferSettings, taught_by: TeacherSource) -> Sequence[str]:
    """The architectures to train one after the other; raises UsageError unless it is clear which."""
    if bool(settings.arch) == bool(taught_by.chain):
        raise UsageError("give the student, either by `arch=ARCH` or by `chain=ARCH,ARCH,...`")
    students = taught_by.chain or (settings.arch,)
    for name in students:
        find_architecture(name)
    return students


def _plan_teacher(file: Path, source: DataSource, run: RunOptions) -> PlannedRun:
    """A teacher by a TOML file, on the data and device of the student unless the file says otherwise."""
    settings, own_source, own_run = settings_from_toml(file, "train", (TrainSettings, DataSource, RunOptions))
    shared_source = DataSource(**{**source.given(), **own_source.given()})
    kept = {name: value for name, value in run.given().items() if name in ("device", "workers")}
    shared_run = RunOptions(**{**kept, **own_run.given()})
    assert isinstance(settings, TrainSettings)
    console.note(f"the teacher, by {file}:")
    require_no_teacher(settings.method)
    return plan_run(settings, shared_source, shared_run)


def _load_teacher(
    paths: Sequence[Path], taught_by: TeacherSource, settings: TransferSettings, run: RunOptions
) -> tuple[Model, list[Link]]:
    """The teacher, several models averaged if need be, and the runs that led to it."""
    device = choose_device(run.device)
    dataset = registry().find("dataset", settings.dataset).value if settings.dataset else None
    given = Assumptions(
        arch=taught_by.teacher_arch, dataset=dataset, normalize=taught_by.teacher_normalize,
        state_key=taught_by.state_key,
    )  # fmt: skip
    with _naming_the_teachers():
        models = [load_model(path, device, given) for path in paths]
    led = cost.union(_lineage(model) for model in models)
    return (models[0] if len(models) == 1 else combine(models, {})), led


@contextmanager
def _naming_the_teachers() -> Iterator[None]:
    """Messages on reading a model name settings as they are called for a teacher."""

    def named(message: str) -> str:
        return re.sub(r"`(arch|normalize)\b", r"`teacher_\1", message)

    try:
        with console.wording(named):
            yield
    except UsageError as error:
        raise type(error)(named(str(error))) from error


def _lineage(model: Model) -> list[Link]:
    named = [Link(each.arch, each.method, each.sha256, generation=place) for place, each in enumerate(lineage(model))]
    return cost.lineage_of(model.path, named)
