"""``smoothctl predict``"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smoothctl.base import console
from smoothctl.cli import evaluation, options
from smoothctl.evaluation.settings import LogOptions
from smoothctl.images.settings import DataSource
from smoothctl.models.settings import ModelSource
from smoothctl.smoothing.settings import Computing, PredictSettings

if TYPE_CHECKING:
    from smoothctl.evaluation.image_files import FilePrediction

NAME = "predict"
EXAMPLES = (
    "Examples: `smoothctl predict runs/student some-image.png`; "
    "`smoothctl predict runs/student --n 1000 --every 10` (the dataset's test split, into a log)"
)


@options.with_flags
def command(
    settings: PredictSettings,
    source: DataSource,
    given: ModelSource,
    computing: Computing,
    log: LogOptions,
    model: evaluation.Model = None,
    images: Annotated[
        list[Path] | None, typer.Argument(metavar="[IMAGE]...", help="Image files; without any, the dataset's split.")
    ] = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Predict with abstention: the smoothed classifier's class, wrong with probability at most alpha.

    PREDICT of Cohen et al. 2019, with the two-sided binomial test. An image file of another size is
    resized so that its shorter side fits the model (bilinear), then cropped in the centre, and
    brought to the model's channels; noise comes after that.
    """
    from smoothctl.records.log import default_log
    from smoothctl.smoothing.predict import resolve_vote

    vote = resolve_vote(settings)
    chosen = evaluation.choose_model(model)
    if images:
        from smoothctl.evaluation.image_files import predict_files

        show_files(predict_files(chosen, images, settings=settings, given=given, computing=computing), json)
        return
    from smoothctl.evaluation.plan import prepare, warn_other_function

    certified = default_log(chosen, "certify")
    job = prepare(chosen, settings, vote, source, given, computing, certified)
    warn_other_function(job.classifier, certified)
    evaluation.work_on(job, chosen, log.out or default_log(chosen, NAME), log, dry_run, json)


def show_files(predictions: list[FilePrediction], as_json: bool) -> None:
    """Print one line, or one JSON object, per image file."""
    if as_json:
        console.result(json_format.dumps({"predictions": [item.plain() for item in predictions]}, indent=2))
        return
    for item in predictions:
        votes = ", ".join(f"{name} {count}" for name, count in item.leading(3))
        said = item.class_name or "abstains"
        console.result(f"{item.path}: {said} (votes of {item.n}: {votes}; p-value {item.p_value:.3g})")
