"""``smoothctl transfer``"""

from __future__ import annotations

from smoothctl.cli import options
from smoothctl.images.settings import DataSource
from smoothctl.training.settings import RunOptions, TeacherSettings, TeacherSource, TransferSettings

NAME = "transfer"
EXAMPLES = (
    "Examples: `smoothctl transfer --teacher runs/teacher --student lenet --out runs/student`; "
    "`smoothctl transfer --teacher r110.pt --student regnetx -o outputs=softmax`; "
    "`smoothctl transfer --teacher r110.pt --chain resnext29,dla,regnetx,vit --out runs/chain`"
)


@options.with_flags
def command(
    taught_by: TeacherSource,
    settings: TransferSettings,
    source: DataSource,
    teaching: TeacherSettings,
    run: RunOptions,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Transfer certified robustness from a teacher to a student at the cost of ordinary training.

    The student learns the teacher's answers on noisy images (CRT). Dataset, sigma and noise come
    from the teacher's file; the student's file records the chain of teachers.
    """
    from smoothctl.cli import outcomes
    from smoothctl.training.transfer import plan_transfer

    outcomes.show_runs(plan_transfer(settings, taught_by, source, run, teaching, dry=dry_run), dry_run, json)
