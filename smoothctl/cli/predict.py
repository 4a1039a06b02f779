"""``smoothctl predict``"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smoothctl import console
from smoothctl.cli import options
from smoothctl.cli.certify import SHARED, Out, check_batch_size, choose_model, work_on

if TYPE_CHECKING:
    from smoothctl.files import FilePrediction
    from smoothctl.jobs import Job

NAME = "predict"
EXAMPLES = (
    "Examples: `smoothctl predict runs/student some-image.png`; "
    "`smoothctl predict runs/student --n 1000 --every 10` (the dataset's test split, into a log)"
)


def command(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="Model file or run directory. [default: the newest run below runs/]"),
    ] = None,
    images: Annotated[
        list[Path] | None, typer.Argument(metavar="[IMAGE]...", help="Image files; without any, the dataset's split.")
    ] = None,
    n: Annotated[int, options.option("--n", help="Noisy copies; at least 1.")] = 1000,
    alpha: options.Alpha = 0.001,
    sigma: Annotated[
        float | None, options.option("--sigma", help="Scale of the noise; above 0. [default: the model's]")
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
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    backend: options.Backend = "auto",
    out: Out = None,
    overwrite: options.Overwrite = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Predict with abstention: the smoothed classifier's class, wrong with probability at most alpha.

    PREDICT of Cohen et al. 2019, with the two-sided binomial test. An image file of another size is
    resized so that its shorter side fits the model (bilinear), then cropped in the centre, and
    brought to the model's channels; noise comes after that.
    """
    values = dict(locals())
    from smoothctl.config import PredictSettings, validated

    settings = validated(PredictSettings, options.given(values, SHARED))
    settings.check()
    check_batch_size(batch_size)
    chosen = choose_model(model)
    from smoothctl import jobs
    from smoothctl.report.sources import default_log
    from smoothctl.runtime import choose_device

    if images:
        from smoothctl.files import predict_files

        given = options.assumptions(values, dataset)
        show_files(predict_files(chosen, images, settings, choose_device(device), batch_size, given, denoiser), json)
        return
    path = out or default_log(chosen, NAME)
    job = jobs.prepare(
        chosen, settings, data=data, device=choose_device(device), download=download, batch_size=batch_size,
        given=options.assumptions(values), denoiser=denoiser,
    )  # fmt: skip
    warn_other_function(job, default_log(chosen, "certify"))
    work_on(job, chosen, path, dry_run=dry_run, overwrite=overwrite, json=json)


def warn_other_function(job: Job, certified: Path) -> None:
    """Warn if the model was certified in another precision or backend: strictly, that is another function."""
    from smoothctl.outputs import read_json
    from smoothctl.records import settings_path

    sidecar = settings_path(certified)
    there = read_json(sidecar)["settings"] if sidecar.exists() else {}
    for key in ("precision", "backend"):
        here = getattr(job.classifier, key)
        if there.get(key, here) != here:
            console.warn(f"{certified} was certified with {key} {there[key]}, this predicts with {here}")


def show_files(predictions: list[FilePrediction], as_json: bool) -> None:
    """Print one line, or one JSON object, per image file."""
    if as_json:
        console.result(json_format.dumps({"predictions": [item.plain() for item in predictions]}, indent=2))
        return
    for item in predictions:
        votes = ", ".join(f"{name} {count}" for name, count in item.leading(3))
        said = item.class_name or "abstains"
        console.result(f"{item.path}: {said} (votes of {item.n}: {votes}; p-value {item.p_value:.3g})")
