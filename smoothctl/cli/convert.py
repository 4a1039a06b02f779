"""``smoothctl convert``"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smoothctl.base import console
from smoothctl.cli import options

if TYPE_CHECKING:
    from smoothctl.models.checkpoint import Model

NAME = "convert"
EXAMPLES = (
    "Examples: `smoothctl convert checkpoint.pth.tar r110.pt --sigma 0.25`; "
    "`smoothctl convert a.pt b.pt c.pt ensemble.pt`; "
    "`smoothctl convert clean.th clean.pt --normalize imagenet --sigma 0`"
)


def command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="OLD... NEW", help="Model files, and the file to write: .pt or .safetensors."),
    ],
    sigma: Annotated[
        float | None,
        options.option(
            "--sigma",
            help="The sigma that OLD was trained for, where it does not say (0: without noise); "
            "with a diffusion model as --denoiser, that of the noise to be taken away.",
        ),
    ] = None,
    arch: options.Arch = None,
    arch_option: options.ArchOptions = None,
    normalize: options.Normalize = None,
    dataset: options.DatasetName = None,
    data: options.Data = None,
    state_key: options.StateKey = None,
    noise: options.NoiseName = None,
    denoiser: options.Denoiser = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Write a model file of smoothctl from other code's, with everything on record.

    Several OLD become one ensemble, whose logits are averaged; with --denoiser, a denoiser stands in
    front. Architecture, classes and input layer are taken from the file or its weights where they
    decide it, and what is assumed is said; what nothing decides is asked for.
    """
    values = dict(locals())
    from smoothctl.base.errors import UsageError

    *old, new = files
    if not old:
        raise UsageError("give both the files: smoothctl convert OLD NEW")
    if new.suffix not in (".pt", ".safetensors"):
        raise UsageError(f"NEW is the last file and ends in .pt or .safetensors, not {new.name}")
    if new.resolve() in [path.resolve() for path in old]:
        raise UsageError(f"{new} is the file to be converted; choose another for what is written")
    if new.exists() and not overwrite:
        raise UsageError(f"{new} is there already; choose another file, or --overwrite")
    if sigma is not None and not 0 <= sigma < float("inf"):
        raise UsageError(f"--sigma: must be 0 or above (got {sigma})")
    from smoothctl.models.checkpoint import save_model

    model = compose([_load(path, values) for path in old], denoiser, sigma)
    new.parent.mkdir(parents=True, exist_ok=True)
    save_model(new, model.info, model.classifier.network.state_dict())
    show(new, model, json)


def _load(path: Path, values: dict[str, Any]) -> Model:
    """Load one file; raises UsageError if nobody says for which sigma it was trained."""
    from dataclasses import replace

    from smoothctl.base.errors import UsageError
    from smoothctl.hooks.registry import registry
    from smoothctl.images.datasets import default_split, open_dataset
    from smoothctl.models.checkpoint import load_model

    given = replace(options.assumptions(values, values["dataset"]), sigma=values["sigma"], noise=values["noise"])
    if given.noise is not None:
        registry().find("noise", given.noise)
    if given.dataset is not None and values["data"] is not None:
        split = default_split(given.dataset)
        given = replace(given, dataset=open_dataset(given.dataset, split, values["data"])[0])
    model = load_model(path, given=given)
    if given.sigma not in (None, model.info.sigma) and values["denoiser"] is None:
        raise UsageError(f"{path} says that it was trained for sigma {model.info.sigma:g}; leave --sigma out")
    if given.dataset is not None and model.info.dataset != given.dataset.name:
        raise UsageError(f"{path} says that it is for {model.info.dataset}; leave --dataset out")
    if model.info.sigma is None:
        raise UsageError(f"{path} does not say for which sigma it was trained; give --sigma (0: without noise)")
    return model


def compose(models: list[Model], denoiser: Path | None, sigma: float | None) -> Model:
    """One model as it is, several as an ensemble, behind a denoiser if there is one."""
    from smoothctl.models.composition import combine, denoised

    return denoised(models[0] if len(models) == 1 else combine(models), denoiser, sigma)


def show(new: Path, model: Model, as_json: bool) -> None:
    """Print what was written."""
    if as_json:
        document = {"model": str(new), "info": model.info.model_dump(mode="json")}
        console.result(json_format.dumps(document, indent=2))
        return
    from smoothctl.cli.outcomes import own_code

    info = model.info
    sigma = "an unknown sigma" if info.sigma is None else f"sigma {info.sigma:g}"
    asked = "" if info.sigma else " --sigma SIGMA"
    console.result(
        f"{new}: {info.arch} for {len(info.class_names)} classes of {info.dataset}, {sigma}\n"
        f"next: smoothctl certify {new}{own_code(info.arch)}{asked}"
    )
