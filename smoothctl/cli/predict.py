"""``smoothctl predict``"""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smoothctl.base import console
from smoothctl.base.errors import UsageError
from smoothctl.base.peers import Waiting
from smoothctl.base.settings import Settings, shown_as_flag
from smoothctl.cli import evaluation, options
from smoothctl.evaluation.settings import LogOptions
from smoothctl.images.settings import DataSource
from smoothctl.models.settings import ModelSource
from smoothctl.smoothing.settings import Computing, PredictSettings, Subset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smoothctl.evaluation.image_files import FilePrediction, FilePredictor

NAME = "predict"
STDIN = Path("-")
EXAMPLES = (
    "Examples: `smoothctl predict runs/student some-image.png`; `smoothctl predict runs/student folder`; "
    "`smoothctl predict runs/student - < images.jsonl`; "
    "`smoothctl predict runs/student --n 1000 --every 10` (the dataset's test split, into a log)"
)


@options.with_flags
def command(
    settings: PredictSettings,
    source: DataSource,
    given: ModelSource,
    computing: Computing,
    waiting: Waiting,
    log: LogOptions,
    model: evaluation.Model = None,
    images: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[IMAGE]...",
            help="Image files, folders of them, or - for JSON lines on stdin; without any, the dataset's split.",
        ),
    ] = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Predict with abstention: the smoothed classifier's class, wrong with probability at most alpha.

    PREDICT of Cohen et al. 2019, with the two-sided binomial test. An image file of another size is
    resized so that its shorter side fits the model (bilinear), then cropped in the centre, and
    brought to the model's channels; noise comes after that.

    With -, each line of stdin is an object with a file's path as "image", or the path alone as a string, and is
    answered at once by a line: the object, with predict (-1: it abstains), class_name, n, p_value and votes, or with
    error.
    """
    from smoothctl.records.log import default_log
    from smoothctl.smoothing.predict import resolve_vote

    vote = resolve_vote(settings)
    chosen = evaluation.choose_model(model)
    if images:
        from smoothctl.evaluation.image_files import image_files, open_predictor

        _refuse_of_splits(settings, source, waiting, log)
        lines = STDIN in images
        if lines and len(images) > 1:
            raise UsageError(f"{STDIN} reads stdin; leave out the other images")
        files = [] if lines else image_files(images)
        predictor = open_predictor(chosen, settings, given, computing, len(files) or 1)
        if dry_run:
            show_plan(predictor, vote.n, files, json)
        elif lines:
            answer_lines(predictor, sys.stdin.buffer)
        else:
            show_files(predictor, files, json)
        return
    from smoothctl.evaluation.plan import prepare, warn_other_function

    certified = default_log(chosen, "certify")
    job = prepare(chosen, settings, vote, source, given, computing, certified)
    warn_other_function(job.classifier, certified)
    evaluation.work_on(job, chosen, log.out or default_log(chosen, NAME), log, dry_run, json, timeout=waiting.timeout)


def _refuse_of_splits(settings: PredictSettings, *others: Settings) -> None:
    """Raise UsageError for options that only a dataset's split, with its log, can follow."""
    given: list[tuple[type[Settings], str]] = [
        (Subset, name) for name in settings.given() if name in Subset.model_fields and name != "dataset"
    ]
    given += [(type(other), name) for other in others for name in other.given()]
    if given:
        flags = " and ".join(shown_as_flag(group, name) for group, name in given)
        raise UsageError(
            f"leave out {flags}, which a dataset's split takes; of image files, answers go to stdout (or --json)"
        )


def show_plan(predictor: FilePredictor, n: int, files: list[Path], as_json: bool) -> None:
    """Say what would be predicted, without doing it."""
    cost = {"images": len(files), "samples": n * len(files)}
    if as_json:
        console.result(json_format.dumps({"plan": cost}, indent=2))
        return
    whose = f"{cost['images']} image files" if files else "each line of stdin"
    total = f", {cost['samples']:,} in all" if files else ""
    console.result(f"plan: {whose}, {n:,} forward passes each{total}, at sigma {predictor.sampler.sigma:g}")


def show_files(predictor: FilePredictor, files: list[Path], as_json: bool) -> None:
    """Print one line per image file as it is decided, or one JSON document; then name the files that are no images."""
    found: list[FilePrediction] = []
    unread: list[str] = []
    for path in files:
        try:
            found.append(predictor(path))
        except UsageError as error:
            unread.append(console.worded(error))
            continue
        if not as_json:
            console.result(describe(found[-1]))
    if as_json:
        console.result(json_format.dumps({"predictions": [item.plain() for item in found]}, indent=2))
    if unread:
        for line in unread[:-1]:
            console.warn(line)
        raise UsageError(unread[-1] + (f" ({len(unread)} of {len(files)} files cannot be read)" if found else ""))


def describe(item: FilePrediction) -> str:
    votes = ", ".join(f"{name} {count}" for name, count in item.leading(3))
    said = item.class_name or "abstains"
    return f"{item.path}: {said} (votes of {item.n}: {votes}; p-value {item.p_value:.3g})"


def answer_lines(predictor: FilePredictor, lines: Iterable[bytes]) -> None:
    """Answer each JSON line with one, at once."""
    for line in lines:
        if line.strip():
            console.result(json_format.dumps(answer(predictor, line.decode(errors="replace"))))


def answer(predictor: FilePredictor, line: str) -> dict[str, Any]:
    """The object of a line, or its path, with what is predicted, or with what is wrong."""
    try:
        given = json_format.loads(line)
    except (ValueError, RecursionError):
        return {"error": f"no JSON: {line.strip()[:80]}"}
    request = {"image": given} if isinstance(given, str) else given
    if not isinstance(request, dict) or not isinstance(request.get("image"), str):
        return {"error": f'no path of an "image": {line.strip()[:80]}'}
    try:
        found = predictor(Path(request["image"])).plain()
    except UsageError as error:
        return {**request, "error": console.worded(error)}
    del found["path"]
    return {**request, **found}
