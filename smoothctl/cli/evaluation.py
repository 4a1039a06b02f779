"""What ``certify`` and ``predict`` have in common: their options, and the work on a dataset's images."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smoothctl.base import console
from smoothctl.cli import options

if TYPE_CHECKING:
    from smoothctl.evaluation.plan import Job
    from smoothctl.records.shards import Shard
    from smoothctl.smoothing.settings import CertifySettings, PredictSettings

Model = Annotated[
    Path | None,
    typer.Argument(metavar="[MODEL]", help="Model file or run directory. [default: the newest run below runs/]"),
]


class Evaluation:
    """The options of the evaluation of a smoothed classifier, in the order of ``--help``."""

    alpha: options.Alpha = 0.001
    sigma: Annotated[
        float | None,
        options.option(
            "--sigma", help="Scale of the noise, in units of pixels in [0,1]; above 0. [default: the model's]"
        ),
    ] = None
    noise: options.NoiseName = None
    dataset: options.DatasetName = None
    data: options.Data = None
    download: options.Download = False
    arch: options.Arch = None
    arch_option: options.ArchOptions = None
    normalize: options.Normalize = None
    state_key: options.StateKey = None
    denoiser: options.Denoiser = None
    split: options.Split = None
    start: options.Start = 0
    stop: options.Stop = None
    every: options.Every = 1
    max: options.Max = None
    seed: options.Seed = 0
    batch_size: options.BatchSize = None
    device: options.Device = "auto"
    precision: options.Precision = "fp32"
    backend: options.Backend = "auto"
    out: Annotated[
        Path | None,
        options.option("--out", metavar="FILE.tsv", help="The log. [default: in the run, or beside the model file]"),
    ] = None
    overwrite: options.Overwrite = False
    dry_run: options.DryRun = False
    json: options.Json = False
    config: options.Config = None


SETTINGS = (
    *("dataset", "split", "start", "stop", "every", "max"),
    *("sigma", "noise", "n", "alpha", "seed", "precision", "backend"),
)


def prepare(model: Path, settings: CertifySettings | PredictSettings, values: dict[str, Any]) -> Job:
    """The job that settings and options describe."""
    from smoothctl.base.devices import choose_device
    from smoothctl.evaluation import plan

    return plan.prepare(
        model, settings, data=values["data"], device=choose_device(values["device"]), download=values["download"],
        batch_size=values["batch_size"], given=options.assumptions(values), denoiser=values["denoiser"],
    )  # fmt: skip


def work_on(job: Job, model: Path, path: Path, values: dict[str, Any], shard: Shard | None = None) -> None:
    """Say the plan, then do it, or only say what it would cost; show the log in the end."""
    from smoothctl.base.launcher import leads
    from smoothctl.cli.outcomes import show_log
    from smoothctl.evaluation.run import run
    from smoothctl.records.log import require_complete

    what = f"share {shard} of " if shard else ""
    backend = f"{job.classifier.backend}, {job.classifier.precision}"
    if leads():
        console.note(f"{model} at sigma {job.sigma:g} on {job.device} ({backend}): {what}{job.plan()}; into {path}")
    if values["dry_run"]:
        show_plan(job, path, values["json"])
        return
    log = run(job, path, values["overwrite"], shard)
    if log is None:
        return
    if not log.rows:
        console.note(f"{path}: share {shard} holds no image")
        return
    show_log(log, values["json"])
    require_complete(log)


def check_batch_size(batch_size: int | None) -> None:
    """Raise UsageError for a batch of no images."""
    from smoothctl.base.errors import UsageError

    if batch_size is not None and batch_size < 1:
        raise UsageError(f"--batch-size: must be at least 1 (got {batch_size})")


def choose_model(model: Path | None) -> Path:
    """The model that was named, or the newest run below runs/, which is said; so is what speaks against it."""
    from smoothctl.models.checkpoint import newest_run

    chosen = model
    if chosen is None:
        chosen = newest_run(Path("runs"))
        console.note(f"no MODEL was given: taking the newest run, {chosen}")
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
    seconds = job.estimate()
    if as_json:
        document = {
            "log": str(path), "settings": job.identity(), "indices": list(job.indices),
            "forward_passes": job.settings.most_copies * len(job.indices), "estimated_seconds": seconds,
        }  # fmt: skip
        console.result(json_format.dumps(document, indent=2))
        return
    shown = ", ".join(str(index) for index in job.indices[:8])
    lines = [
        f"settings (nothing is written; the log would be {path}):",
        *options.show_settings(job.identity()),
        f"plan: {job.plan()}",
        f"images: {shown}{', ...' if len(job.indices) > 8 else ''}",
        f"classes: {', '.join(f'{place}={name}' for place, name in enumerate(job.dataset.class_names[:12]))}",
        f"estimate: about {console.duration(seconds)} on {job.device}",
    ]
    console.result("\n".join(lines))
