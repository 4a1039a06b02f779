"""``smoothctl attack``"""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING

from smoothctl.base import console
from smoothctl.cli import evaluation, options
from smoothctl.evaluation.settings import AttackSettings, LogOptions
from smoothctl.images.settings import DataSource
from smoothctl.models.settings import ModelSource
from smoothctl.smoothing.settings import Computing

if TYPE_CHECKING:
    from smoothctl.records.attacks import AttackLog

EXAMPLES = (
    "Examples: `smoothctl attack runs/student`; "
    "`smoothctl attack runs/student --multiples 1,1.5,2 --samples 1000 --step-size 0.1`"
)


@options.with_flags
def command(
    settings: AttackSettings,
    source: DataSource,
    given: ModelSource,
    computing: Computing,
    log: LogOptions,
    model: evaluation.Model = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Attack certified images within and beyond their radii.

    PGD on the averaged softmax (Salman et al. 2019) at multiples of each image's certified radius, for the images that
    certify's log certifies for their label. What an attacked image is, PREDICT decides; an attack succeeds if that is
    another class. Within the radius this happens with probability at most the sum of both alphas. Every finished
    image is on disk at once, and the same command resumes. `smoothctl report` shows the attacks that lie beside a log.
    """
    from smoothctl.evaluation.attack import plan_attack
    from smoothctl.records.attacks import attack_path

    settings.check()
    chosen = evaluation.choose_model(model)
    planned = plan_attack(chosen, settings, source, given, computing)
    path = log.out or attack_path(planned.certified)
    console.note(f"{chosen} at sigma {planned.job.sigma:g} on {planned.job.device}: {planned.plan()}; into {path}")
    if dry_run:
        document = {"log": str(path), "settings": planned.identity(), "images": len(planned.radii)}
        lines = [*options.show_settings(planned.identity()), f"plan: {planned.plan()}"]
        console.result(json_format.dumps(document, indent=2) if json else "\n".join(lines))
        return
    _show(planned.run(path, log.overwrite), json)


def _show(log: AttackLog, as_json: bool) -> None:
    from smoothctl.base.errors import SmoothctlError
    from smoothctl.reporting.measures.attacks import successes
    from smoothctl.reporting.output.attacked import success

    if log.images and as_json:
        figures = [{**asdict(at), "rate": at.rate} for at in successes(log)]
        document = {"log": str(log.path), "multiples": figures, "images": [asdict(image) for image in log.images]}
        console.result(json_format.dumps(document, indent=2))
    elif log.images:
        success(log.path.parent.name or log.path.name, log).show()
        console.result(f"log: {log.path}")
    if log.failed:
        raise SmoothctlError(f"{log.failed} of {log.planned} images failed; the same command tries them again")
