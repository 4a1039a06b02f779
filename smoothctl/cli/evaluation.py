"""What ``certify`` and ``predict`` have in common: the model that is meant, the plan, and the log in the end."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smoothctl.base import console
from smoothctl.base.peers import TIMEOUT
from smoothctl.cli import options
from smoothctl.evaluation.settings import LogOptions

if TYPE_CHECKING:
    from smoothctl.evaluation.plan import Job
    from smoothctl.evaluation.run import Question
    from smoothctl.records.shards import Shard

Model = Annotated[
    Path | None,
    typer.Argument(
        metavar="[MODEL]",
        help="Model file or run directory. [default: the newest run below runs/, else the only model file here]",
    ),
]


def work_on(
    job: Job,
    model: Path,
    path: Path,
    log: LogOptions,
    dry_run: bool,
    as_json: bool,
    shard: Shard | None = None,
    question: Question | None = None,
    timeout: float = TIMEOUT,
) -> None:
    """Say the plan, then do it, or only say what it would cost; show the log in the end."""
    from smoothctl.base.launcher import leads
    from smoothctl.cli.outcomes import show_log
    from smoothctl.evaluation.run import run
    from smoothctl.records.log import require_complete

    what = f"shard {shard} of " if shard else ""
    backend = f"{job.classifier.backend}, {job.classifier.precision}"
    if leads():
        console.note(f"{model} at sigma {job.sigma:g} on {job.device} ({backend}): {what}{job.plan()}; into {path}")
    if dry_run:
        show_plan(job, path, as_json)
        return
    done = run(job, path, log.overwrite, shard, question, timeout)
    if done is None:
        return
    if not done.rows:
        console.note(f"{path}: shard {shard} holds no image")
        return
    show_log(done, as_json)
    if question is None or not question.decided or any(row.failed for row in done.rows):
        require_complete(done)


def choose_model(model: Path | None) -> Path:
    """The model that was named, or else the one that is found here, which is said; so is what speaks against it."""
    from smoothctl.models.checkpoint import default_model

    chosen = model
    if chosen is None:
        chosen, why = default_model(Path())
        console.note(f"no MODEL was given: taking {why}, {chosen}")
    _warn_of_run(chosen)
    return chosen


def _warn_of_run(model: Path) -> None:
    """Name a run that has not come to its end, or has learnt nothing, before hours are spent on it."""
    from smoothctl.base.errors import SmoothctlError
    from smoothctl.records.run_directory import MODEL_FILE, RunDirectory
    from smoothctl.training.noisy_accuracy import run_is_at_chance

    run = RunDirectory(model.parent if model.name == MODEL_FILE else model)
    if not run.exists:
        return
    try:
        there, history = run.read_settings(), run.read_history()
    except SmoothctlError:
        return  # certifying needs only the model
    if there is not None and there["finished"] is None:
        console.warn(
            f"{run.path} is unfinished, after {len(history)} of {there['settings'].get('epochs', '?')} epochs; the "
            "command that began it resumes it"
        )
    if run_is_at_chance(history[-1]):
        console.warn(
            f"{run.path} is hardly better than guessing ({100 * history[-1]['heldout_accuracy']:.1f} % under noise), "
            "so there may be nothing to certify"
        )


def show_plan(job: Job, path: Path, as_json: bool) -> None:
    """Print what would be done, and how long it may take."""
    from smoothctl.evaluation.resolution import resolution

    seconds, told = job.estimate(), resolution(len(job.indices))
    if as_json:
        document = {
            "log": str(path), "settings": job.identity(), "indices": list(job.indices),
            "forward_passes": job.procedure.likely_samples * len(job.indices),
            "most_forward_passes": job.procedure.most_samples * len(job.indices), "estimated_seconds": seconds,
            "resolution": vars(told),
        }  # fmt: skip
        console.result(json_format.dumps(document, indent=2))
        return
    shown = ", ".join(str(index) for index in job.indices[:8])
    lines = [
        f"settings (nothing is written; the log would be {path}):",
        *options.show_settings(job.identity()),
        f"plan: {job.plan()}",
        f"images: {shown}{', ...' if len(job.indices) > 8 else ''}",
        f"they tell: {told}",
        f"classes: {', '.join(f'{place}={name}' for place, name in enumerate(job.dataset.class_names[:12]))}",
        f"estimate: about {console.duration(seconds)} on {job.device}",
    ]
    console.result("\n".join(lines))
