"""Options that several commands share: their words, their help, and how they are gathered."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from smoothctl.base.errors import UsageError

option = partial(typer.Option, show_envvar=False)


def _load_config(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None:
        from smoothctl.base.settings import read_toml

        command = str(context.info_name)
        known = {str(parameter.name) for parameter in context.command.params}
        values = read_toml(path, command)
        if unknown := sorted(set(values) - known):
            raise UsageError(f"--config: {path} sets {unknown[0]!r}, which {command} does not know")
        several = {str(parameter.name) for parameter in context.command.params if parameter.multiple}
        listed = {name: _as_typed(value, name in several) for name, value in values.items()}
        context.default_map = {**(context.default_map or {}), **listed}
    return path


def _as_typed(value: Any, several: bool) -> Any:
    """A value of a TOML file as the command line would have it: tables as name=value, lists with commas."""
    if isinstance(value, dict):
        return [f"{name}={part}" for name, part in value.items()]
    if several:
        return value if isinstance(value, list) else [value]
    return ",".join(map(str, value)) if isinstance(value, list) else value


Config = Annotated[
    Path | None,
    option("--config", help="Settings from a TOML file: top-level values and a table per command.",
                 callback=_load_config, is_eager=True, metavar="FILE.toml"
    ),
]  # fmt: skip
DatasetName = Annotated[str | None, option("--dataset", help="Dataset; `smoothctl plugins` lists them.")]
Data = Annotated[
    Path | None,
    option("--data", help="Where the dataset's files are: a folder, or an .npz file of arrays.", metavar="PATH"),
]
Download = Annotated[bool, option("--download", help="Fetch the dataset's files if they are missing.")]
Sigma = Annotated[
    float | None,
    option("--sigma", help="Scale of the noise, in units of pixels in [0,1]; above 0."),
]
NoiseName = Annotated[str | None, option("--noise", help="Noise; `smoothctl plugins` lists them.")]
Seed = Annotated[int, option("--seed", help="Seed of all randomness.")]
Device = Annotated[str, option("--device", help="auto, cpu, cuda, cuda:INDEX or mps.")]
BatchSize = Annotated[
    int | None,
    option("--batch-size", help="Noisy images a forward pass; changes no result. [default: by the device]"),
]
Precision = Annotated[str, option("--precision", help="fp32, tf32, bf16 or fp16; logs record it.")]
Backend = Annotated[
    str,
    option(
        "--backend",
        help="auto, eager, compile or onnxruntime; auto takes ONNX Runtime for large jobs on a CPU if it is installed "
        "and agrees with PyTorch.",
    ),
]
Alpha = Annotated[float, option("--alpha", help="Probability of being wrong, per image; between 0 and 1.")]
Arch = Annotated[
    str | None,
    option("--arch", help="Architecture of a model file that does not say it (other code's, or your own module's)."),
]
ArchOptions = Annotated[
    list[str] | None, option("--arch-option", metavar="NAME=VALUE", help="Option of the architecture.")
]
Normalize = Annotated[
    str | None,
    option(
        "--normalize",
        metavar="HOW",
        help="Input layer: a dataset's name (cifar10, imagenet), center (its mean only), none, or mean,std.",
    ),
]
StateKey = Annotated[
    str | None, option("--state-key", metavar="KEY", help="Where in the file the weights are, such as ema.state_dict.")
]
Denoiser = Annotated[
    Path | None,
    option(
        "--denoiser",
        metavar="PATH",
        help="A denoiser to put in front of the model: weights of a DnCNN, or a folder of a diffusion model.",
    ),
]
Size = Annotated[int | None, option("--size", help="Side in pixels to which image files are brought, before noise.")]
Split = Annotated[str | None, option("--split", help="Split of the dataset. [default: test]")]
Start = Annotated[int, option("--start", help="Index of the first image.")]
Stop = Annotated[int | None, option("--stop", help="Index before which to stop.")]
Every = Annotated[int, option("--every", "--skip", help="Take every so manyth image (`--skip` is read alike).")]
Max = Annotated[int | None, option("--max", help="At most so many images.")]
Json = Annotated[bool, option("--json", help="Print exactly one JSON document on stdout.")]
DryRun = Annotated[bool, option("--dry-run", help="Print settings, plan and an estimate of the time; write nothing.")]
Overwrite = Annotated[bool, option("--overwrite", help="Start anew, replacing what is there.")]


def shared(group: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a class, its annotated attributes, after its own; they arrive as ``**values``."""

    def with_group(command: Callable[..., None]) -> Callable[..., None]:
        hints = {**inspect.get_annotations(command, eval_str=True), **inspect.get_annotations(group, eval_str=True)}
        own = [
            parameter
            for parameter in inspect.signature(command).parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        added = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=getattr(group, name), annotation=hints[name]
            )
            for name in inspect.get_annotations(group)
        ]
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name])
            for parameter in own
        ]

        @functools.wraps(command)
        def wrapped(**values: Any) -> None:
            command(**values)

        wrapped.__signature__ = inspect.Signature([*parameters, *added])  # type: ignore[attr-defined]
        wrapped.__annotations__ = hints
        return wrapped

    return with_group


def given(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The named settings that the user gave, by flag, environment or TOML file."""
    return {name: values[name] for name in names if values[name] is not None}


def was_given(context: typer.Context, name: str) -> bool:
    """Whether the user gave an option, by flag, environment or TOML file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def pairs(texts: Iterable[str], flag: str) -> dict[str, str]:
    """Read ``name=value`` texts; raises UsageError for one without an equals sign."""
    read = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag} {text}: write it as name=value")
        read[name.strip().replace("-", "_")] = value.strip()
    return read


def numbers(text: str | None, flag: str) -> tuple[float, ...] | None:
    """Read ``0,0.25,0.5``; raises UsageError for anything but numbers."""
    if text is None:
        return None
    try:
        read = tuple(float(part) for part in text.replace(",", " ").split())
    except ValueError:
        read = ()
    if not read:
        raise UsageError(f"{flag} {text}: write numbers such as 0,0.25,0.5")
    return read


def show_settings(settings: Mapping[str, Any]) -> list[str]:
    """Settings as lines, for a dry run."""
    width = max(map(len, settings))
    return [f"  {name:<{width}}  {value}" for name, value in settings.items()]


def assumptions(values: Mapping[str, Any], dataset: str | None = None) -> Any:
    """What the user says of a model file that does not say it itself, as ``smoothctl.Assumptions``."""
    from smoothctl.hooks.registry import registry
    from smoothctl.models.import_checkpoint import Assumptions

    return Assumptions(
        arch=values["arch"],
        dataset=None if dataset is None else registry().find("dataset", dataset).value,
        arch_options=pairs(values["arch_option"] or [], "--arch-option"),
        normalize=values["normalize"],
        state_key=values["state_key"],
    )
