"""What ``train`` and ``transfer`` have in common: their options and the run itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from smoothctl import console
from smoothctl.cli import options

if TYPE_CHECKING:
    from smoothctl.api import Dataset
    from smoothctl.checkpoint import Model
    from smoothctl.config import TrainSettings
    from smoothctl.train import Trainer

MethodOptions = Annotated[
    list[str] | None,
    options.option(
        "--option", "-o", metavar="NAME=VALUE", help="Option of the method; `smoothctl plugins METHOD` lists them."
    ),
]
Epochs = Annotated[int | None, options.option("--epochs", help="Passes over the training images.")]
BatchSize = Annotated[int | None, options.option("--batch-size", help="Images per optimiser step.")]
Rate = Annotated[float | None, options.option("--lr", help="Initial learning rate of SGD.")]
Momentum = Annotated[float | None, options.option("--momentum", help="Momentum of SGD.")]
WeightDecay = Annotated[float | None, options.option("--weight-decay", help="Weight decay.")]
Milestones = Annotated[
    str | None,
    options.option(
        "--milestones",
        metavar="A,B,...",
        help="Epochs, from 0, at whose start the learning rate drops. [default: 1/2, 3/4]",
    ),
]
Gamma = Annotated[float | None, options.option("--gamma", help="Factor of each drop of the learning rate.")]
Augment = Annotated[
    bool | None, options.option("--augment/--no-augment", help="The dataset's augmentation, if it has one.")
]
HeldoutMax = Annotated[
    int, options.option("--heldout-max", help="Images of the test split on which accuracy under noise is watched.")
]
Workers = Annotated[
    int, options.option("--workers", min=0, help="Processes that load images which do not fit in memory.")
]
Out = Annotated[
    Path | None, options.option("--out", metavar="DIR", help="Run directory. [default: a name below runs/]")
]

PLAIN = ("sigma", "noise", "epochs", "batch_size", "lr", "momentum", "weight_decay", "gamma", "augment",
         "normalize", "size", "seed")  # fmt: skip


def run_training(
    values: dict[str, Any], arch: str | None, dataset_name: str, method_name: str, teacher: Model | None
) -> None:
    """Resolve the settings, then train or say what would be done. ``values`` are the command's options."""
    from smoothctl.checkpoint import require_sigma
    from smoothctl.config import train_settings
    from smoothctl.data import open_dataset
    from smoothctl.jobs import default_split
    from smoothctl.models import canonical_arch
    from smoothctl.plugins import registry
    from smoothctl.runtime import choose_device
    from smoothctl.train import Trainer, TrainingData, check_teacher, train

    plugins = registry()
    method = plugins.find("method", method_name).value
    dataset = plugins.find("dataset", dataset_name).value
    chosen = options.given(values, PLAIN)
    if arch is not None:
        chosen["arch"] = arch
    if values["milestones"] is not None:
        chosen["milestones"] = values["milestones"].split(",") if values["milestones"] else []
    chosen["options"] = options.pairs(values["option"] or [], "-o")
    chosen["arch_options"] = options.pairs(values["arch_option"] or [], "--arch-option")
    if teacher is not None:
        chosen.setdefault("sigma", require_sigma(chosen.get("sigma"), teacher))
        chosen.setdefault("noise", teacher.info.noise)
        chosen["teacher_sha256"] = teacher.sha256
    settings, recipe = train_settings(chosen, method, dataset)
    # Aliases name the same thing, so they must not make other settings.
    noise = plugins.find("noise", settings.noise).name
    settings = settings.model_copy(update={"arch": canonical_arch(settings.arch), "noise": noise})
    device = choose_device(values["device"])
    shape = wanted_shape(dataset, settings.size, teacher)
    opened, images = open_dataset(dataset, "train", values["data"], values["download"], shape)
    if teacher is not None:
        check_teacher(teacher, settings, opened)
    _, heldout = open_dataset(dataset, default_split(dataset), values["data"], values["download"], opened.shape or None)
    data = TrainingData(opened, images, heldout, values["heldout_max"])
    out = values["out"] or default_out(settings)
    told = f"{settings.method}: {settings.arch} on {dataset.name} at sigma {settings.sigma:g}, {settings.epochs} epochs"
    console.note(f"{told}, on {device}, into {out}")
    if recipe.source:
        console.note(f"recipe: {recipe.source}; flags override it (--dry-run shows every setting)")
    if values["dry_run"]:
        _show_plan(Trainer(settings, data, device, teacher), out, values["json"])
        return
    history = train(
        settings, data, out, device=device, teacher=teacher, workers=values["workers"], overwrite=values["overwrite"],
        about={"recipe": recipe.source, "data": str(values["data"] or "")},
    )  # fmt: skip
    _show_result(out, settings, history, values["json"])


def wanted_shape(dataset: Dataset, size: int | None, teacher: Model | None) -> tuple[int, int, int] | None:
    """The shape to which image files are brought: --size, else the teacher's, else the dataset's own."""
    if size is not None:
        return (dataset.shape[0] if dataset.shape else 3), size, size
    return teacher.info.input_shape if teacher is not None and not dataset.shape else None


def default_out(settings: TrainSettings) -> Path:
    """``runs/digits-gaussian-resnet20-0.25``"""
    return Path("runs") / f"{settings.dataset}-{settings.method}-{settings.arch.replace('/', '-')}-{settings.sigma:g}"


def _show_plan(trainer: Trainer, out: Path, as_json: bool) -> None:
    settings, count = trainer.settings, len(trainer.data.train)
    seconds = trainer.estimate()
    if as_json:
        plan = {"images": count, "steps_per_epoch": trainer.steps_per_epoch, "estimated_seconds": seconds}
        document = {"out": str(out), "settings": settings.model_dump(mode="json"), "plan": plan}
        console.result(json.dumps(document, indent=2))
        return
    rates = sorted({settings.learning_rate(epoch) for epoch in range(settings.epochs)}, reverse=True)
    lines = [
        f"settings (nothing is written; the run would go into {out}):",
        *options.show_settings(settings.model_dump()),
        f"plan: {count:,} images, {trainer.steps_per_epoch:,} steps an epoch, {settings.epochs} epochs, "
        f"learning rates {', '.join(f'{rate:g}' for rate in rates)}",
        f"estimate: about {console.duration(seconds)} on {trainer.device}",
    ]
    console.result("\n".join(lines))


def _show_result(out: Path, settings: TrainSettings, history: list[dict[str, Any]], as_json: bool) -> None:
    last = history[-1]
    if as_json:
        console.result(
            json.dumps({"run": str(out), "settings": settings.model_dump(mode="json"), "epochs": history}, indent=2)
        )
        return
    console.result(
        f"{out}: {settings.arch} on {settings.dataset}, sigma {settings.sigma:g}, {settings.epochs} epochs, "
        f"accuracy under noise on held-out images {100 * last['heldout_accuracy']:.1f} %\n"
        f"next: smoothctl certify {out}"
    )
