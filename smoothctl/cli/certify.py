"""``smoothctl certify``"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from smoothctl.cli import evaluation, options

NAME = "certify"
EXAMPLES = (
    "Examples: `smoothctl certify runs/student --n 100000 --alpha 0.001`; "
    "`smoothctl certify r110.pt --data cifar10.npz --every 20 --max 500 --dry-run`"
)


@options.shared(evaluation.Evaluation)
def command(
    context: typer.Context,
    model: evaluation.Model = None,
    n0: Annotated[int, options.option("--n0", help="Noisy copies to select the class; at least 1.")] = 100,
    n: Annotated[
        int | None,
        options.option(
            "--n",
            help="Fresh noisy copies to estimate p_A; with --radii or --budget, the most that one image may use. "
            "[default: 100000; 125000 with --radii]",
        ),
    ] = None,
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
            help="For evaluation: stop after selection if the class is not the label, which certified accuracy and ACR "
            "cannot notice.",
        ),
    ] = False,
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
    **values: Any,
) -> None:
    """Certify images: a radius within which the smoothed classifier provably does not change.

    CERTIFY of Cohen et al. 2019. Each radius holds with probability 1-alpha per image, for the
    smoothed classifier (not the base classifier), in the norm of the noise (L2 for gaussian), in
    units of pixels in [0,1]. 8-bit images are certified in exact arithmetic, so that rounding
    cannot make a radius false; others in floating-point arithmetic. Every finished image is on
    disk at once; the same command goes on with a log that was cut short.

    `--radii` and `--budget` are stopping rules with the same guarantee that need far fewer copies:
    the first asks only which of these radii are proved (enough for a table of certified accuracy),
    the second chooses n per image (for ACR). `torchrun --nproc-per-node N -m smoothctl --
    certify ...` shares the images out.
    """
    from smoothctl.base.errors import UsageError
    from smoothctl.base.settings import validated
    from smoothctl.cli.outcomes import show_log
    from smoothctl.records.log import default_log, require_complete
    from smoothctl.records.shards import merge_shares, read_shard, share_path
    from smoothctl.smoothing.settings import CertifySettings

    own = {"n0": n0, "n": n, "radii": options.numbers(radii, "--radii"), "budget": budget, "bound": bound,
           "skip_misclassified": skip_misclassified}  # fmt: skip
    named = (*evaluation.SETTINGS, *own)
    settings = validated(CertifySettings, options.given({**values, **own}, named))
    settings.check()
    evaluation.check_batch_size(values["batch_size"])
    chosen = evaluation.choose_model(model)
    path = values["out"] or default_log(chosen, NAME)
    if merge:
        if shard is not None:
            raise UsageError("--merge joins all shares; leave out --shard")
        given = {name for name in named if options.was_given(context, name) and name != "backend"}
        merged = merge_shares(path, settings.model_dump(mode="json", include=given), values["overwrite"])
        show_log(merged, values["json"])
        require_complete(merged)
        return
    share = None if shard is None else read_shard(shard)
    if share is not None:
        path = share_path(path, share)
    evaluation.work_on(evaluation.prepare(chosen, settings, values), chosen, path, values, share)
