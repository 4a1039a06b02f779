"""What commands print in the end: a training run, or the figures of a log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smoothctl.base import console
from smoothctl.cli import options

if TYPE_CHECKING:
    from smoothctl.records.cost import Link
    from smoothctl.records.log import Log
    from smoothctl.training.execution import Execution
    from smoothctl.training.settings import TrainSettings
    from smoothctl.training.trainer import Estimate, Trainer


@dataclass(frozen=True)
class Outcome:
    """A run that is finished or planned: as plain data and as text."""

    out: Path
    document: dict[str, Any]
    text: str


def show(outcomes: Sequence[Outcome], as_json: bool) -> None:
    """Print one run, or several of a chain; nothing for those that are silent."""
    outcomes = [outcome for outcome in outcomes if outcome.text]
    if as_json and outcomes:
        documents = [outcome.document for outcome in outcomes]
        console.result(json.dumps(documents[0] if len(documents) == 1 else {"runs": documents}, indent=2))
        return
    for outcome in outcomes:
        console.result(outcome.text)


def silent(out: Path) -> Outcome:
    """A run of which the first of torchrun's processes speaks."""
    return Outcome(out, {}, "")


def where(execution: Execution) -> str:
    """``cpu``, or how many processes there are on what."""
    world = execution.group.world
    return str(execution.device) if world == 1 else f"{world} processes, each on {execution.device.type}"


def planned(trainer: Trainer, estimate: Estimate, out: Path) -> Outcome:
    """A dry run: the settings, the plan and what it may cost."""
    settings, count = trainer.settings, len(trainer.data.train)
    plan = {
        "images": count, "steps_per_epoch": trainer.batches.steps_per_epoch, "estimated_seconds": estimate.seconds,
        **{f"{name}_per_image": value for name, value in estimate.passes.items()},
    }  # fmt: skip
    rates = sorted({settings.learning_rate(epoch) for epoch in range(settings.epochs)}, reverse=True)
    shown = [f"{rate:g}" for rate in rates]
    if len(shown) > 4:
        shown = [shown[0], "...", shown[-1]]
    lines = [
        f"settings (nothing is written; the run would go into {out}):",
        *options.show_settings(settings.model_dump()),
        f"plan: {count:,} images, {trainer.batches.steps_per_epoch:,} steps an epoch, {settings.epochs} epochs, "
        f"learning rates {', '.join(shown)}",
        f"cost: {_passes(estimate)}",
        f"estimate: about {console.duration(estimate.seconds)} on {where(trainer.execution)}",
    ]
    document = {"out": str(out), "settings": settings.model_dump(mode="json"), "plan": plan}
    return Outcome(out, document, "\n".join(lines))


def _passes(estimate: Estimate) -> str:
    """``2 forward and 2 backward passes``: per image and epoch, in the early epochs."""
    counts = {name.removesuffix("_passes"): f"{value:.4g}" for name, value in estimate.passes.items()}
    teacher = f", {counts['teacher']} forward passes of the teacher" if estimate.passes["teacher_passes"] else ""
    return f"{counts['forward']} forward and {counts['backward']} backward passes for each image of an epoch{teacher}"


def own_code(arch: str) -> str:
    """The option by which a command may run a user's own code, where a model needs that."""
    from smoothctl.models.user_module import is_own

    return f" --arch {arch}" if is_own(arch) else ""


def finished(out: Path, settings: TrainSettings, history: list[dict[str, Any]], lineage: Sequence[Link]) -> Outcome:
    """A run that is done: its accuracy, its cost and that of its lineage, and what to do next."""
    from smoothctl.records import cost
    from smoothctl.training.noisy_accuracy import run_is_at_chance

    own, last = cost.total(history), history[-1]
    before = cost.seconds(lineage) if lineage else 0.0
    spent = f"training took {console.duration(own.seconds)}"
    if before:
        spent += f", {console.duration(before + own.seconds)} with all that led to the teacher"
    text = (
        f"{out}: {settings.arch} on {settings.dataset}, sigma {settings.sigma:g}, {settings.epochs} epochs, "
        f"noisy accuracy on test images {100 * last['heldout_accuracy']:.1f} %; {spent}\n"
    )
    if run_is_at_chance(last):
        text += _advise(last, settings)
    else:
        text += f"next: smoothctl certify {out}{own_code(settings.arch)}"
    document = {
        "run": str(out), "settings": settings.model_dump(mode="json"), "epochs": history,
        "cost": {**vars(own), "lineage_seconds": None if before is None else before + own.seconds},
    }  # fmt: skip
    return Outcome(out, document, text)


def _advise(last: dict[str, Any], settings: TrainSettings) -> str:
    """What to try with a run that is hardly better than guessing."""
    ways = [f"--lr {settings.lr / 10:g} (now {settings.lr:g})", "--warmup-epochs 2", f"--epochs {2 * settings.epochs}"]
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
    table = tables.certified([summary], radii) if log.kind == "certify" else tables.predicted([summary])
    table.show()
    if summary.acr_reason:
        console.note(f"no ACR: {summary.acr_reason}")
    elif summary.abstained == 1 and not all(row.verdict == "misclassified" for row in log.rows):
        console.note("every image abstained: the classifier may be at chance under this noise, or n too small")
    console.result(f"log: {log.path}")
