"""What commands print in the end: a training run, or the figures of a log."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from smoothctl.base import console
from smoothctl.cli import options

if TYPE_CHECKING:
    from smoothctl.records.log import Log
    from smoothctl.training.launch import PlannedRun, TrainedRun
    from smoothctl.training.trainer import Estimate


def show_runs(planned: Iterable[PlannedRun], dry_run: bool, as_json: bool) -> None:
    """Do runs one after the other, or say what they would cost; print each, or one JSON document of all."""
    documents = []
    texts = []
    for run in planned:
        document, text = _plan(run) if dry_run else _done(run.start())
        if run.execution.group.leads:
            documents.append(document)
            texts.append(text)
    if as_json and documents:
        console.result(json.dumps(documents[0] if len(documents) == 1 else {"runs": documents}, indent=2))
        return
    for text in texts:
        console.result(text)


def _plan(run: PlannedRun) -> tuple[dict[str, Any], str]:
    """A dry run: the settings, the plan and what it may cost."""
    trainer, estimate = run.estimate()
    settings, count = run.settings, len(run.data.train)
    plan = {
        "images": count, "steps_per_epoch": trainer.batches.steps_per_epoch, "estimated_seconds": estimate.seconds,
        **{f"{name}_per_image": value for name, value in estimate.passes.items()},
    }  # fmt: skip
    rates = sorted({settings.learning_rate(epoch) for epoch in range(settings.epochs)}, reverse=True)
    shown = [f"{rate:g}" for rate in rates]
    if len(shown) > 4:
        shown = [shown[0], "...", shown[-1]]
    lines = [
        f"settings (nothing is written; the run would go into {run.path}):",
        *options.show_settings(settings.model_dump()),
        f"plan: {count:,} images, {trainer.batches.steps_per_epoch:,} steps an epoch, {settings.epochs} epochs, "
        f"learning rates {', '.join(shown)}",
        f"cost: {_passes(estimate)}",
        f"estimate: about {console.duration(estimate.seconds)} on {run.execution.where}",
    ]
    document = {"out": str(run.path), "settings": settings.model_dump(mode="json"), "plan": plan}
    return document, "\n".join(lines)


def _passes(estimate: Estimate) -> str:
    """``2 forward and 2 backward passes``: per image and epoch, in the early epochs."""
    counts = {name.removesuffix("_passes"): f"{value:.4g}" for name, value in estimate.passes.items()}
    teacher = f", {counts['teacher']} forward passes of the teacher" if estimate.passes["teacher_passes"] else ""
    return f"{counts['forward']} forward and {counts['backward']} backward passes for each image of an epoch{teacher}"


def own_code(arch: str) -> str:
    """The option by which a command may run a user's own code, where a model needs that."""
    from smoothctl.models.user_module import is_own

    return f" --arch {arch}" if is_own(arch) else ""


def _done(run: TrainedRun) -> tuple[dict[str, Any], str]:
    """A run that is done: its accuracy, its cost, and that of its lineage."""
    if not run.leads:
        return {}, ""
    settings, own, whole = run.settings, run.cost, run.lineage_seconds
    spent = f"training took {console.duration(own.seconds)}"
    if run.lineage and whole is not None:
        spent += f", {console.duration(whole)} with all that led to the teacher"
    text = (
        f"{run.path}: {settings.arch} on {settings.dataset}, sigma {settings.sigma:g}, {settings.epochs} epochs, "
        f"noisy accuracy on test images {100 * run.noisy_accuracy:.1f} %; {spent}\n"
    )
    text += _advise(run) if run.at_chance else f"next: {_certify(run)}"
    document = {
        "run": str(run.path), "settings": settings.model_dump(mode="json"), "epochs": list(run.epochs),
        "cost": {**vars(own), "lineage_seconds": whole},
    }  # fmt: skip
    return document, text


def _certify(run: TrainedRun) -> str:
    """The command that certifies a run, as it is typed."""
    data = "" if run.data is None else f" --data {shlex.quote(str(run.data))}"
    return f"smoothctl certify {shlex.quote(str(run.path))}{data}{own_code(run.settings.arch)}"


def _advise(run: TrainedRun) -> str:
    """What to try with a run that is hardly better than guessing: another teacher, if its own is no better."""
    from smoothctl.training.noisy_accuracy import at_chance

    settings, last = run.settings, run.epochs[-1]
    taught = run.epochs[0].get("teacher_accuracy")
    if taught is not None and at_chance(taught, last["chance_accuracy"]):
        return (
            f"it is hardly better than guessing, and so is its teacher ({100 * taught:.1f} %); there is nothing to "
            "certify, and nothing to learn from this --teacher: give another, with --overwrite"
        )
    ways = [f"--epochs {2 * settings.epochs}", f"--lr {settings.lr / 10:g} (now {settings.lr:g})", "--warmup-epochs 2"]
    if settings.options and settings.teacher_sha256 is None:
        ways.append(f"milder options of the method (smoothctl plugins {settings.method})")
    return (
        f"it is hardly better than guessing ({100 * last['chance_accuracy']:.1f} % is always answering one class), "
        f"so there is nothing to certify yet; try {', '.join(ways[:-1])} or {ways[-1]}, with --overwrite"
    )


def show_log(log: Log, as_json: bool) -> None:
    """Print the figures of one log on stdout: a table, or one JSON document."""
    from smoothctl.reporting.frames import from_log
    from smoothctl.reporting.measures.metrics import default_radii
    from smoothctl.reporting.measures.summary import summarise
    from smoothctl.reporting.output import document, tables

    frame = from_log(log, log.path.parent.name or log.path.name)
    radii = default_radii([frame])
    summary = summarise(frame, radii)
    if as_json:
        rows = [vars(row) for row in log.rows]
        content = document.build([summary], radii, list(log.notices))
        console.result(json.dumps({"log": str(log.path), **content, "rows": rows}, indent=2, allow_nan=False))
        return
    table = (
        tables.certified([summary], radii, norm=frame.norm) if log.kind == "certify" else tables.predicted([summary])
    )
    table.show()
    if summary.acr_reason:
        console.note(f"no ACR: {summary.acr_reason}")
    elif summary.abstained == 1 and not all(row.verdict == "misclassified" for row in log.rows):
        console.note("every image abstained: the classifier may be at chance under this noise, or n too small")
    console.result(f"log: {log.path}")
