"""``smoothctl certify``"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smoothctl import console
from smoothctl.cli import options

if TYPE_CHECKING:
    from smoothctl.jobs import Job

NAME = "certify"
EXAMPLES = (
    "Examples: `smoothctl certify runs/student --n 100000 --alpha 0.001`; "
    "`smoothctl certify r110.pt --data cifar10.npz --every 20 --max 500 --dry-run`"
)
Model = Annotated[
    Path | None,
    typer.Argument(metavar="[MODEL]", help="Model file or run directory. [default: the newest run below runs/]"),
]
Out = Annotated[
    Path | None,
    options.option("--out", metavar="FILE.tsv", help="The log. [default: in the run, or beside the model file]"),
]
SUBSET = ("dataset", "split", "start", "stop", "every", "max", "sigma", "noise", "n", "alpha", "seed")


def command(
    model: Model = None,
    n0: Annotated[int, options.option("--n0", help="Noisy copies to select the class; at least 1.")] = 100,
    n: Annotated[int, options.option("--n", help="Fresh noisy copies to estimate p_A; at least 1.")] = 100_000,
    alpha: options.Alpha = 0.001,
    sigma: Annotated[
        float | None,
        options.option(
            "--sigma", help="Scale of the noise, in units of pixels in [0,1]; above 0. [default: the model's]"
        ),
    ] = None,
    noise: options.NoiseName = None,
    dataset: options.DatasetName = None,
    data: options.Data = None,
    download: options.Download = False,
    arch: options.Arch = None,
    arch_option: options.ArchOptions = None,
    normalize: options.Normalize = None,
    state_key: options.StateKey = None,
    denoiser: options.Denoiser = None,
    split: options.Split = None,
    start: options.Start = 0,
    stop: options.Stop = None,
    every: options.Every = 1,
    max: options.Max = None,
    seed: options.Seed = 0,
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
    out: Out = None,
    overwrite: options.Overwrite = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Certify images: a radius within which the smoothed classifier provably does not change.

    CERTIFY of Cohen et al. 2019. Each radius holds with probability 1-alpha per image, for the
    smoothed classifier (not the base classifier), in the norm of the noise (L2 for gaussian), in
    units of pixels in [0,1], subject to floating-point arithmetic. Every finished image is on
    disk at once; the same command goes on with a log that was cut short.
    """
    values = dict(locals())
    from smoothctl.config import CertifySettings, validated
    from smoothctl.report.sources import default_log
    from smoothctl.report.summary import show_log

    settings = validated(CertifySettings, options.given(values, (*SUBSET, "n0")))
    settings.check_n()
    check_batch_size(batch_size)
    chosen = choose_model(model)
    path = out or default_log(chosen, NAME)
    from smoothctl import jobs
    from smoothctl.runtime import choose_device

    job = jobs.prepare(
        chosen, settings, data=data, device=choose_device(device), download=download,
        given=options.assumptions(values), denoiser=denoiser,
    )  # fmt: skip
    console.note(f"{chosen} at sigma {job.sigma:g} on {job.device}: {job.plan()}; into {path}")
    if dry_run:
        show_plan(job, path, batch_size, json)
        return
    log = jobs.run(job, path, batch_size, overwrite)
    show_log(log, json)
    jobs.require_no_failures(log)


def check_batch_size(batch_size: int) -> None:
    """Raise UsageError for a batch of no images."""
    from smoothctl.errors import UsageError

    if batch_size < 1:
        raise UsageError(f"--batch-size: must be at least 1 (got {batch_size})")


def choose_model(model: Path | None) -> Path:
    """The model that was named, or the newest run below runs/, which is said."""
    if model is not None:
        return model
    from smoothctl.checkpoint import newest_run

    newest = newest_run(Path("runs"))
    console.note(f"no MODEL was given: taking the newest run, {newest}")
    return newest


def show_plan(job: Job, path: Path, batch_size: int, as_json: bool) -> None:
    """Print what would be done, and how long it may take."""
    seconds = job.estimate(batch_size)
    if as_json:
        document = {
            "log": str(path), "settings": job.identity(), "indices": list(job.indices),
            "forward_passes": job.copies * len(job.indices), "estimated_seconds": seconds,
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
