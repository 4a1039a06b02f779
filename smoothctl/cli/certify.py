"""``smoothctl certify``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smoothctl.base.peers import Waiting
from smoothctl.cli import evaluation, options
from smoothctl.evaluation.settings import LogOptions, Requirements, Sharding
from smoothctl.images.settings import DataSource
from smoothctl.models.settings import ModelSource
from smoothctl.smoothing.rules import rule_options
from smoothctl.smoothing.settings import AUTO, CertifySettings, Computing

if TYPE_CHECKING:
    from smoothctl.base.settings import Settings as RuleOptions
else:
    RuleOptions = rule_options()

NAME = "certify"
EXAMPLES = (
    "Examples: `smoothctl certify runs/student --n 100000 --alpha 0.001`; "
    "`smoothctl certify r110.pt --data cifar10.npz --every 20 --max 500 --dry-run`; "
    "`smoothctl certify runs/student --require 'acc@0.5>=60%'`"
)


@options.with_flags
def command(
    settings: CertifySettings,
    rule: RuleOptions,
    source: DataSource,
    given: ModelSource,
    computing: Computing,
    waiting: Waiting,
    sharding: Sharding,
    requirements: Requirements,
    log: LogOptions,
    model: evaluation.Model = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Certify images: a radius within which the smoothed classifier provably does not change.

    CERTIFY of Cohen et al. 2019. Each radius holds with probability 1-alpha per image, for the
    smoothed classifier (not the base classifier), in the norm of the noise (L2 for gaussian), in
    units of pixels in [0,1]. 8-bit images are certified in exact arithmetic, so that rounding
    cannot make a radius false; others in floating-point arithmetic. Every finished image is on
    disk at once; the same command goes on with a log that was cut short.

    `--radii` and `--budget` are stopping rules with the same guarantee that need far fewer samples:
    the first asks only which of these radii are proved (enough for a table of certified accuracy),
    the second chooses n per image (for ACR). `--require` asks only whether a requirement is met, and stops
    when no further image could change the answer. `torchrun --nproc-per-node N -m smoothctl --
    certify ...` shares the images out.
    """
    from smoothctl.base.errors import GateFailed, UsageError
    from smoothctl.evaluation.plan import prepare
    from smoothctl.records.log import default_log
    from smoothctl.records.shards import read_shard, require_no_others, shard_path
    from smoothctl.reporting import deciding
    from smoothctl.smoothing.procedure import resolve

    gates = deciding.read_requirements(requirements.require)
    settings, asked = deciding.asked_for(settings, rule.given(), gates)
    procedure = resolve(settings, asked)
    chosen = evaluation.choose_model(model)
    path = log.out or default_log(chosen, NAME)
    if gates and (sharding.merge or sharding.shard is not None):
        raise UsageError("--require is decided by one process, with all images; leave out --shard and --merge")
    if sharding.merge:
        _merge(path, settings, rule, sharding, log, json)
        return
    shard = None if sharding.shard is None else read_shard(sharding.shard)
    if shard is not None:
        require_no_others(path, shard)
        path = shard_path(path, shard)
    job = prepare(chosen, settings, procedure, source, given, computing, path)
    verdict = deciding.Verdict(gates, len(job.indices), settings.alpha) if gates else None
    evaluation.work_on(job, chosen, path, log, dry_run, json, shard, verdict, waiting.timeout)
    if verdict is not None and verdict.met is False:
        raise GateFailed(f"--require is not met: {verdict.describe()}")


def _merge(
    path: Path, settings: CertifySettings, rule: RuleOptions, sharding: Sharding, log: LogOptions, json: bool
) -> None:
    from smoothctl.base.errors import UsageError
    from smoothctl.cli.outcomes import show_log
    from smoothctl.records.log import require_complete
    from smoothctl.records.shards import merge_shards

    if sharding.shard is not None:
        raise UsageError("--merge joins all shards; leave out --shard")
    given = settings.model_dump(mode="json", include=set(settings.given()))
    given = {name: value for name, value in given.items() if value != AUTO}
    given |= rule.model_dump(mode="json", include=set(rule.given()))
    merged = merge_shards(path, given, log.overwrite)
    show_log(merged, json)
    require_complete(merged)
