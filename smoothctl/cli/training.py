"""What ``train`` and ``transfer`` have in common: their options and the run itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from smoothctl.base import console
from smoothctl.cli import options, outcomes

if TYPE_CHECKING:
    from smoothctl.cli.outcomes import Outcome
    from smoothctl.hooks.datasets import Dataset
    from smoothctl.models.checkpoint import Model
    from smoothctl.records.cost import Link
    from smoothctl.training.execution import Execution
    from smoothctl.training.sanity_check import EarlyCheck
    from smoothctl.training.settings import TrainSettings


class Training:
    """The options of a training run, in the order of ``--help``."""

    data: options.Data = None
    download: options.Download = False
    noise: options.NoiseName = None
    option: Annotated[
        list[str] | None,
        options.option(
            "--option", "-o", metavar="NAME=VALUE", help="Option of the method; `smoothctl plugins METHOD` lists them."
        ),
    ] = None
    arch_option: options.ArchOptions = None
    recipe: Annotated[
        str | None,
        options.option(
            "--recipe", metavar="NAME", help="Which of the method's recipes; `smoothctl plugins METHOD` lists them."
        ),
    ] = None
    init: Annotated[
        Path | None,
        options.option(
            "--init",
            metavar="MODEL",
            help="Start from the weights of a run or model file, other code's too; a last layer for other classes is "
            "replaced.",
        ),
    ] = None
    freeze: Annotated[bool, options.option("--freeze", help="Train the last layer only.")] = False
    lr_layers: Annotated[
        float | None,
        options.option(
            "--lr-layers", metavar="F", help="Factor of the learning rate for all layers but the last. [default: 1]"
        ),
    ] = None
    limit: Annotated[
        int | None,
        options.option("--limit", min=1, help="Train on at most so many images, as many of each class as there are."),
    ] = None
    epochs: Annotated[int | None, options.option("--epochs", help="Passes over the training images.")] = None
    batch_size: Annotated[
        int | None, options.option("--batch-size", help="Images of one optimiser step, over all processes.")
    ] = None
    lr: Annotated[float | None, options.option("--lr", help="Learning rate before it drops.")] = None
    optimizer: Annotated[
        str | None, options.option("--optimizer", help="sgd, adamw, or any other name that timm knows. [default: sgd]")
    ] = None
    momentum: Annotated[float | None, options.option("--momentum", help="Momentum of SGD. [default: 0.9]")] = None
    nesterov: Annotated[
        bool | None, options.option("--nesterov/--no-nesterov", help="Nesterov's form of momentum.")
    ] = None
    weight_decay: Annotated[
        float | None, options.option("--weight-decay", help="Weight decay, on all parameters. [default: 0.0001]")
    ] = None
    schedule: Annotated[
        str | None,
        options.option("--schedule", help="Of the learning rate: multistep, cosine or constant. [default: multistep]"),
    ] = None
    milestones: Annotated[
        str | None,
        options.option(
            "--milestones",
            metavar="A,B,...",
            help="Epochs, from 0, at whose start the learning rate drops. [default: 1/2, 3/4]",
        ),
    ] = None
    gamma: Annotated[
        float | None, options.option("--gamma", help="Factor of each drop of the learning rate. [default: 0.1]")
    ] = None
    warmup_epochs: Annotated[
        int | None, options.option("--warmup-epochs", help="Epochs in which the learning rate grows from zero.")
    ] = None
    clip: Annotated[float | None, options.option("--clip", help="Largest norm of the gradient.")] = None
    ema: Annotated[
        float | None,
        options.option("--ema", help="Keep an average of the weights with this decay, such as 0.999, as the model."),
    ] = None
    augment: Annotated[
        bool | None, options.option("--augment/--no-augment", help="The dataset's augmentation, if it has one.")
    ] = None
    normalize: options.Normalize = None
    size: options.Size = None
    heldout_max: Annotated[
        int,
        options.option(
            "--heldout-max", min=1, help="Images of the test split on which accuracy under noise is watched."
        ),
    ] = 1000
    check_radius: Annotated[
        float | None,
        options.option(
            "--check-radius",
            metavar="R",
            min=0,
            help="Measure certified accuracy at this radius on a few held-out images after the first epoch, and "
            "again after a tenth of them. [default: sigma for transfer, none for train]",
        ),
    ] = None
    check_images: Annotated[
        int, options.option("--check-images", min=0, help="Images of that check; 0 leaves it out.")
    ] = 200
    workers: Annotated[
        int, options.option("--workers", min=0, help="Processes that load images which do not fit in memory.")
    ] = 0
    seed: options.Seed = 0
    device: options.Device = "auto"
    precision: Annotated[
        str | None,
        options.option("--precision", help="Of the network: fp32, tf32, bf16 or fp16 (autocast). [default: fp32]"),
    ] = None
    compile: Annotated[bool, options.option("--compile", help="Compile the network with torch.compile.")] = False
    track: Annotated[
        list[str] | None,
        options.option(
            "--track", metavar="NAME", help="Follow the run elsewhere too, such as in tensorboard or wandb."
        ),
    ] = None
    keep_every: Annotated[
        int | None,
        options.option("--keep-every", min=1, metavar="K", help="Keep a model file of every K-th epoch in the run."),
    ] = None
    out: Annotated[
        Path | None, options.option("--out", metavar="DIR", help="Run directory. [default: a name below runs/]")
    ] = None
    overwrite: options.Overwrite = False
    dry_run: options.DryRun = False
    json: options.Json = False
    config: options.Config = None


PLAIN = (
    *("sigma", "noise", "epochs", "batch_size", "lr", "optimizer", "momentum", "nesterov", "weight_decay"),
    *(
        "schedule",
        "gamma",
        "warmup_epochs",
        "clip",
        "ema",
        "lr_layers",
        "precision",
        "augment",
        "normalize",
        "size",
        "seed",
    ),
)


def run_training(
    values: dict[str, Any],
    arch: str | None,
    dataset_name: str,
    method_name: str,
    teacher: Model | None = None,
    lineage: Sequence[Link] = (),
) -> Outcome:
    """Resolve the settings, then train or find what it would cost; torchrun's other processes have nothing to say.

    ``values`` are the command's options, ``lineage`` the runs that led to the teacher.
    """
    from smoothctl.hooks.registry import registry
    from smoothctl.images.datasets import default_split, open_dataset
    from smoothctl.images.subset import take_balanced
    from smoothctl.models.checkpoint import require_sigma
    from smoothctl.models.classifier import canonical_arch
    from smoothctl.training.batches import TrainingData
    from smoothctl.training.initial import check_initial, load_initial
    from smoothctl.training.recipes import train_settings
    from smoothctl.training.run import train
    from smoothctl.training.teacher import check_teacher, refuse_over_teacher
    from smoothctl.training.trackers import find_trackers
    from smoothctl.training.trainer import Trainer

    plugins = registry()
    method = plugins.find("method", method_name).value
    dataset = plugins.find("dataset", dataset_name).value
    chosen = options.given(values, PLAIN)
    init = None if values["init"] is None else load_initial(values["init"], arch, values["normalize"])
    if init is not None:
        arch = init.info.arch if arch is None else canonical_arch(arch)
        check_initial(init, arch)
        chosen["init_sha256"] = init.sha256
    if arch is not None:
        chosen["arch"] = arch
    if values["freeze"]:
        chosen["lr_layers"] = 0.0
    if values["milestones"] is not None:
        chosen["milestones"] = values["milestones"].split(",") if values["milestones"] else []
    chosen["options"] = options.pairs(values["option"] or [], "-o")
    chosen["arch_options"] = options.pairs(values["arch_option"] or [], "--arch-option")
    if init is not None and not chosen["arch_options"]:
        chosen["arch_options"] = {name: str(value) for name, value in init.info.arch_options.items()}
    if teacher is not None:
        chosen.setdefault("sigma", require_sigma(chosen.get("sigma"), teacher))
        chosen.setdefault("noise", teacher.info.noise)
        chosen["teacher_sha256"] = teacher.sha256
    settings, choice = train_settings(chosen, method, dataset, values["recipe"])
    # Aliases name the same thing, so they must not make other settings.
    noise = plugins.find("noise", settings.noise).name
    settings = settings.model_copy(update={"arch": canonical_arch(settings.arch), "noise": noise})
    trackers = find_trackers(values["track"] or [])
    execution = _execution(values)
    settings.check(execution.device.type)
    shape = wanted_shape(dataset, settings.size, teacher)
    out = values["out"] or default_out(settings)
    if teacher is not None:
        refuse_over_teacher(out, [*values["teachers"], teacher.path])
    opened, images = open_dataset(dataset, "train", values["data"], values["download"], shape)
    if teacher is not None:
        check_teacher(teacher, settings, opened)
    split = default_split(dataset)
    _, heldout = open_dataset(dataset, split, values["data"], values["download"], opened.shape or None)
    if values["limit"] is not None:
        images = take_balanced(images, values["limit"], settings.seed)
    data = TrainingData(opened, images, heldout, values["heldout_max"], split)
    told = f"{settings.method}: {settings.arch} on {dataset.name} at sigma {settings.sigma:g}, {settings.epochs} epochs"
    leads = execution.group.leads
    if leads:
        console.note(f"{told}, on {outcomes.where(execution)}, into {out}")
        for line in choice.describe(settings):
            console.note(line)
        if init is not None and values["recipe"] is None:
            console.note(
                "weights that were trained without noise become robust by: --method gaussian --recipe finetune"
            )
    check = _early_check(values, settings, teacher)
    if values["dry_run"]:
        plan = Trainer(settings, data, execution, teacher, init)
        planned = outcomes.planned(plan, plan.estimate(), out)
        return planned if leads else outcomes.silent(out)
    about = {
        "recipe": choice.recipe.source,
        "data": str(values["data"] or ""),
        "lineage": [link.as_plain() for link in lineage],
    }
    history = train(
        settings, data, out, execution, teacher=teacher, overwrite=values["overwrite"], about=about,
        trackers=trackers, check=check, init=init, keep_every=values["keep_every"],
    )  # fmt: skip
    if not leads:
        return outcomes.silent(out)
    return outcomes.finished(out, settings, history, lineage)


def _early_check(values: dict[str, Any], settings: TrainSettings, teacher: Model | None) -> EarlyCheck | None:
    """The check of a student, at one sigma unless another radius is given; none for training without a teacher."""
    from smoothctl.hooks.registry import registry
    from smoothctl.training.sanity_check import plan_check

    radius, images = values["check_radius"], values["check_images"]
    if not images or (radius is None and teacher is None):
        return None
    noise = registry().find("noise", settings.noise).value
    return plan_check(radius, images, settings.epochs, settings.sigma, noise)


def _execution(values: dict[str, Any]) -> Execution:
    from smoothctl.base.devices import choose_device
    from smoothctl.base.settings import validated
    from smoothctl.smoothing.settings import TeacherSettings
    from smoothctl.training.distributed import join_group
    from smoothctl.training.execution import Execution

    device = choose_device(values["device"])
    teacher_device = values.get("teacher_device")
    return Execution(
        device,
        workers=values["workers"],
        compile=values["compile"],
        group=join_group(device),
        teacher_device=choose_device(teacher_device) if teacher_device else None,
        teacher=validated(TeacherSettings, values.get("teacher", {}), prefix="--teacher-"),
    )


def wanted_shape(dataset: Dataset, size: int | None, teacher: Model | None) -> tuple[int, int, int] | None:
    """The shape to which image files are brought: --size, else the teacher's, else the dataset's own."""
    if size is not None:
        return (dataset.shape[0] if dataset.shape else 3), size, size
    return teacher.info.input_shape if teacher is not None and not dataset.shape else None


def default_out(settings: TrainSettings) -> Path:
    """``runs/digits-gaussian-resnet20-0.25``"""
    return Path("runs") / f"{settings.dataset}-{settings.method}-{settings.arch.replace('/', '-')}-{settings.sigma:g}"
