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
    from smoothctl.sharing import Shard

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
SHARED = (
    *("dataset", "split", "start", "stop", "every", "max"),
    *("sigma", "noise", "n", "alpha", "seed", "precision", "backend"),
)
OWN = ("n0", "radii", "budget", "bound", "skip_misclassified")


def command(
    context: typer.Context,
    model: Model = None,
    n0: Annotated[int, options.option("--n0", help="Noisy copies to select the class; at least 1.")] = 100,
    n: Annotated[
        int | None,
        options.option(
            "--n",
            help="Fresh noisy copies to estimate p_A; with --radii or --budget, the most that one image may use. "
            "[default: 100000; 125000 with --radii]",
        ),
    ] = None,
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
    radii: Annotated[
        str | None,
        options.option(
            "--radii",
            metavar="R,R,...",
            help="Ask only which of these radii are proved: the same guarantee with far fewer copies.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        options.option("--budget", help="Choose n per image from a pilot: precise, balanced, fast or draft."),
    ] = None,
    bound: Annotated[
        str, options.option("--bound", help="binary, or multi: bound the runner-up too, which can certify p_A < 1/2.")
    ] = "binary",
    skip_misclassified: Annotated[
        bool,
        options.option(
            "--skip-misclassified",
            help="For evaluation: stop after selection if the class is not the label, which no measure can notice.",
        ),
    ] = False,
    seed: options.Seed = 0,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    backend: options.Backend = "auto",
    shard: Annotated[
        str | None,
        options.option(
            "--shard",
            metavar="I/K",
            help="Do the I-th of K shares (or slurm: the share of this task of a Slurm array), into a log of its own.",
        ),
    ] = None,
    merge: Annotated[
        bool, options.option("--merge", help="Join the logs of all shares into one, without computing anything.")
    ] = False,
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

    `--radii` and `--budget` are stopping rules with the same guarantee that need far fewer copies:
    the first asks only which of these radii are proved (enough for a table of certified accuracy),
    the second chooses n per image (for ACR). `torchrun --nproc-per-node N -m smoothctl --
    certify ...` shares the images out.
    """
    values = dict(locals())
    from smoothctl.config import CertifySettings, validated
    from smoothctl.journal import merge_shares, share_path
    from smoothctl.records import require_complete
    from smoothctl.report.sources import default_log
    from smoothctl.report.summary import show_log
    from smoothctl.sharing import read_shard

    values["radii"] = options.numbers(radii, "--radii")
    settings = validated(CertifySettings, options.given(values, (*SHARED, *OWN)))
    settings.check()
    check_batch_size(batch_size)
    chosen = choose_model(model)
    path = out or default_log(chosen, NAME)
    if merge:
        named = {name for name in (*SHARED, *OWN) if options.was_given(context, name) and name != "backend"}
        merged = merge_shares(path, settings.model_dump(mode="json", include=named), overwrite)
        show_log(merged, json)
        require_complete(merged)
        return
    share = None if shard is None else read_shard(shard)
    if share is not None:
        path = share_path(path, share)
    from smoothctl import jobs
    from smoothctl.runtime import choose_device

    job = jobs.prepare(
        chosen, settings, data=data, device=choose_device(device), download=download, batch_size=batch_size,
        given=options.assumptions(values), denoiser=denoiser,
    )  # fmt: skip
    work_on(job, chosen, path, dry_run=dry_run, overwrite=overwrite, json=json, shard=share)


def work_on(
    job: Job, model: Path, path: Path, *, dry_run: bool, overwrite: bool, json: bool, shard: Shard | None = None
) -> None:
    """Say the plan, then do it, or only say what it would cost; show the log in the end."""
    from smoothctl.records import require_complete
    from smoothctl.report.summary import show_log
    from smoothctl.work import run

    what = f"share {shard} of " if shard else ""
    backend = f"{job.classifier.backend}, {job.classifier.precision}"
    console.note(f"{model} at sigma {job.sigma:g} on {job.device} ({backend}): {what}{job.plan()}; into {path}")
    if dry_run:
        show_plan(job, path, json)
        return
    log = run(job, path, overwrite, shard)
    if log is None:
        return
    if not log.rows:
        console.note(f"{path}: share {shard} holds no image")
        return
    show_log(log, json)
    require_complete(log)


def check_batch_size(batch_size: int | None) -> None:
    """Raise UsageError for a batch of no images."""
    from smoothctl.errors import UsageError

    if batch_size is not None and batch_size < 1:
        raise UsageError(f"--batch-size: must be at least 1 (got {batch_size})")


def choose_model(model: Path | None) -> Path:
    """The model that was named, or the newest run below runs/, which is said."""
    if model is not None:
        return model
    from smoothctl.checkpoint import newest_run

    newest = newest_run(Path("runs"))
    console.note(f"no MODEL was given: taking the newest run, {newest}")
    return newest


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
