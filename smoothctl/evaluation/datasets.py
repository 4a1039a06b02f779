"""``certify`` and ``predict`` on a dataset's images, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smoothctl.base.settings import Settings, keyword_settings
from smoothctl.evaluation.plan import prepare, warn_other_function
from smoothctl.evaluation.run import run
from smoothctl.evaluation.settings import LogOptions
from smoothctl.images.settings import DataSource
from smoothctl.models.settings import ModelSource
from smoothctl.records.log import Log, default_log
from smoothctl.smoothing.predict import resolve_vote
from smoothctl.smoothing.procedure import resolve
from smoothctl.smoothing.rules import rule_options
from smoothctl.smoothing.settings import CertifySettings, Computing, PredictSettings

if TYPE_CHECKING:
    RuleOptions = Settings
else:
    RuleOptions = rule_options()


@keyword_settings
def certify_dataset(
    model: Path | str,
    settings: CertifySettings,
    rule: RuleOptions,
    source: DataSource,
    given: ModelSource,
    computing: Computing,
    log: LogOptions,
) -> Log | None:
    """Certify a dataset's images by CERTIFY of Cohen et al. 2019, as ``smoothctl certify MODEL`` does; the whole log.

    ``model`` is a run directory or a file. Every finished image is on disk at once, and the same call goes on with
    a log that was cut short. None for a process of torchrun's that only helps. Raises UsageError for settings that do
    not fit together, or a log that was made with others.
    """
    path = log.out or default_log(Path(model), "certify")
    job = prepare(Path(model), settings, resolve(settings, rule.given()), source, given, computing, path)
    return run(job, path, log.overwrite)


@keyword_settings
def predict_dataset(
    model: Path | str,
    settings: PredictSettings,
    source: DataSource,
    given: ModelSource,
    computing: Computing,
    log: LogOptions,
) -> Log | None:
    """Predict a dataset's images by PREDICT of Cohen et al. 2019, as ``smoothctl predict MODEL`` does; the whole log.

    Otherwise as :func:`certify_dataset`.
    """
    certified = default_log(Path(model), "certify")
    job = prepare(Path(model), settings, resolve_vote(settings), source, given, computing, certified)
    warn_other_function(job.classifier, certified)
    return run(job, log.out or default_log(Path(model), "predict"), log.overwrite)
