"""``smoothctl predict``"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smoothctl.base import console
from smoothctl.cli import evaluation, options

if TYPE_CHECKING:
    from smoothctl.evaluation.image_files import FilePrediction

NAME = "predict"
EXAMPLES = (
    "Examples: `smoothctl predict runs/student some-image.png`; "
    "`smoothctl predict runs/student --n 1000 --every 10` (the dataset's test split, into a log)"
)


@options.shared(evaluation.Evaluation)
def command(
    model: evaluation.Model = None,
    images: Annotated[
        list[Path] | None, typer.Argument(metavar="[IMAGE]...", help="Image files; without any, the dataset's split.")
    ] = None,
    n: Annotated[int, options.option("--n", help="Noisy copies; at least 1.")] = 1000,
    **values: Any,
) -> None:
    """Predict with abstention: the smoothed classifier's class, wrong with probability at most alpha.

    PREDICT of Cohen et al. 2019, with the two-sided binomial test. An image file of another size is
    resized so that its shorter side fits the model (bilinear), then cropped in the centre, and
    brought to the model's channels; noise comes after that.
    """
    from smoothctl.base.settings import validated
    from smoothctl.evaluation.plan import warn_other_function
    from smoothctl.records.log import default_log
    from smoothctl.smoothing.settings import PredictSettings

    settings = validated(PredictSettings, options.given({**values, "n": n}, evaluation.SETTINGS))
    settings.check()
    evaluation.check_batch_size(values["batch_size"])
    chosen = evaluation.choose_model(model)
    certified = default_log(chosen, "certify")
    if images:
        from smoothctl.base.devices import choose_device
        from smoothctl.evaluation.image_files import predict_files

        given = options.assumptions(values, values["dataset"])
        device = choose_device(values["device"])
        found = predict_files(
            chosen, images, settings, device, values["batch_size"], given, values["denoiser"], certified
        )
        show_files(found, values["json"])
        return
    job = evaluation.prepare(chosen, settings, values)
    warn_other_function(job.classifier, certified)
    evaluation.work_on(job, chosen, values["out"] or default_log(chosen, NAME), values)


def show_files(predictions: list[FilePrediction], as_json: bool) -> None:
    """Print one line, or one JSON object, per image file."""
    if as_json:
        console.result(json_format.dumps({"predictions": [item.plain() for item in predictions]}, indent=2))
        return
    for item in predictions:
        votes = ", ".join(f"{name} {count}" for name, count in item.leading(3))
        said = item.class_name or "abstains"
        console.result(f"{item.path}: {said} (votes of {item.n}: {votes}; p-value {item.p_value:.3g})")
