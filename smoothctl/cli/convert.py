"""``smoothctl convert``"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smoothctl.base import console
from smoothctl.cli import options
from smoothctl.images.settings import DataSource
from smoothctl.models.settings import EXPORTED, ConvertSettings, ModelSource

if TYPE_CHECKING:
    from smoothctl.models.checkpoint import Model

NAME = "convert"
EXAMPLES = (
    "Examples: `smoothctl convert checkpoint.pth.tar r110.pt --sigma 0.25`; "
    "`smoothctl convert a.pt b.pt c.pt ensemble.pt`; "
    "`smoothctl convert clean.th clean.pt --normalize imagenet --sigma 0`; "
    "`smoothctl convert runs/student model.onnx`"
)


@options.with_flags
def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="OLD... NEW", help="Model files or runs, and the file to write: .pt, .safetensors, .onnx or .pt2."
        ),
    ],
    settings: ConvertSettings,
    given: ModelSource,
    source: DataSource,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Write a model file of smoothctl from a third-party one, with everything on record; or export one.

    Several OLD become one ensemble, whose logits are averaged; with --denoiser, a denoiser stands in
    front. Architecture, classes and normalization layer are taken from the file or its weights where they
    decide it, and what is assumed is said; what nothing decides is asked for.

    A NEW that ends in .onnx (ONNX) or .pt2 (torch.export) is for other runtimes: the base classifier with its
    normalization layer, from pixels in [0,1] to logits, with classes, input size, sigma and noise in its metadata.
    Noise and votes are left to the caller.
    """
    from smoothctl.models.convert import convert

    *old, new = files
    show(new, convert(old, new, settings=settings, given=given, source=source), json)


def show(new: Path, model: Model, as_json: bool) -> None:
    """Print what was written."""
    if as_json:
        document = {"model": str(new), "info": model.info.model_dump(mode="json")}
        console.result(json_format.dumps(document, indent=2))
        return
    from smoothctl.cli.outcomes import own_code

    info = model.info
    if new.suffix in EXPORTED:
        shape = ",".join(map(str, info.input_shape))
        console.result(
            f"{new}: {info.arch}, from pixels [N,{shape}] in [0,1] to logits [N,{len(info.class_names)}]; a caller "
            f"adds {info.noise} noise{f' of sigma {info.sigma:g}' if info.sigma else ''} and counts votes"
        )
        return
    sigma = "an unknown sigma" if info.sigma is None else f"sigma {info.sigma:g}"
    asked = "" if info.sigma else " --sigma SIGMA"
    console.result(
        f"{new}: {info.arch} for {len(info.class_names)} classes of {info.dataset}, {sigma}\n"
        f"next: smoothctl certify {new}{own_code(info.arch)}{asked}"
    )
