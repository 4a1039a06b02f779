"""Model files: plain tensors and plain data, which can be loaded without running any code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from smoothctl.base.devices import versions
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.base.files import file_sha256, replace_file
from smoothctl.hooks.defaults import NOISE
from smoothctl.hooks.registry import provenance, registry
from smoothctl.models.classifier import BaseClassifier, build_classifier, canonical_arch
from smoothctl.models.import_checkpoint import Assumptions, Recognised, recognise
from smoothctl.models.normalization import describe
from smoothctl.models.safe_loading import FORMAT, load_state, read_content, write_safetensors
from smoothctl.models.user_module import is_own
from smoothctl.records.run_directory import MODEL_FILE, RunDirectory

# Of an image's shape in a file: no network here is meant for more, and memory follows from it.
MOST_PIXELS = 1 << 22

ENDINGS = (".pt", ".pth", ".th", ".tar", ".ckpt", ".safetensors")
"""Of files that may hold a model, where one is looked for unasked."""


class Ancestor(BaseModel):
    """A teacher in a model's lineage."""

    arch: str
    method: str
    sigma: float | None
    dataset: str
    sha256: str


class Origin(BaseModel):
    """A file that a model was made from: other code's that was converted, or a part of a composed model."""

    file: str
    sha256: str


class ModelInfo(BaseModel):
    """What a model file says of itself. Of sigma, 0 means trained without noise, None that nobody said."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    arch: str
    arch_options: dict[str, Any] = Field(default_factory=dict)
    class_names: list[str]
    input_shape: tuple[int, int, int]
    mean: list[float]
    std: list[float]
    noise: str
    sigma: Annotated[float, Field(ge=0)] | None
    method: str
    method_options: dict[str, Any] = Field(default_factory=dict)
    dataset: str
    seed: int | None = None
    epochs: int | None = None
    origin: Origin | None = None
    parts: list[Origin] = Field(default_factory=list)
    lineage: list[Ancestor] = Field(default_factory=list)
    plugins: dict[str, dict[str, str]] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_shape(self) -> Self:
        if min(self.input_shape) < 1 or math.prod(self.input_shape) > MOST_PIXELS:
            raise ValueError(f"input_shape must be of 1 to {MOST_PIXELS:,} values")
        if not len(self.mean) == len(self.std) == self.input_shape[0] or min(self.std) <= 0:
            raise ValueError("mean and std must have a value a channel, and std must be above 0")
        return self


@dataclass(frozen=True)
class Model:
    """A model that was loaded: the base classifier in eval mode, frozen, and where it came from."""

    classifier: BaseClassifier
    info: ModelInfo
    sha256: str
    path: Path


def save_model(path: Path, info: ModelInfo, state: Mapping[str, Tensor]) -> None:
    """Write a model file atomically: ``.safetensors`` by that ending, else torch's format."""
    described = info.model_dump(mode="json")
    if path.suffix == ".safetensors":
        metadata = {"format": FORMAT, "info": json.dumps(described)}
        replace_file(path, lambda temporary: write_safetensors(temporary, state, metadata))
    else:
        tensors = {key: value.detach().cpu().contiguous() for key, value in state.items()}
        content = {"format": FORMAT, "info": described, "state_dict": tensors}
        replace_file(path, lambda temporary: torch.save(content, temporary))


def find_model_file(path: Path) -> Path:
    """The model file of a run directory, or the file itself; raises UsageError if there is none."""
    if path.is_dir():
        for name in (MODEL_FILE, "model.safetensors"):
            if (path / name).is_file():
                return path / name
        raise UsageError(f"{path} has no {MODEL_FILE}; is it a run directory whose training has finished an epoch?")
    if not path.is_file():
        raise UsageError(f"there is no model at {path}; name a run or a checkpoint, or train one with: smoothctl train")
    return path


def default_model(place: Path) -> tuple[Path, str]:
    """What is meant where no model is named, and why: the newest run below runs/, else the only model file here.

    Raises UsageError if there is none, or several files.
    """
    runs = sorted((place / "runs").glob(f"**/{MODEL_FILE}"), key=lambda path: path.stat().st_mtime)
    if runs:
        return runs[-1].parent, "the newest run"
    if RunDirectory(place).exists:
        return place, "the run here"
    files = sorted(path for path in place.iterdir() if path.suffix in ENDINGS and path.is_file())
    if len(files) == 1:
        return files[0], "the only model file here"
    if files:
        named = ", ".join(path.name for path in files[:5]) + (", ..." if len(files) > 5 else "")
        raise UsageError(f"no MODEL was given, and {len(files)} model files are here ({named}); name one")
    raise UsageError(
        "no MODEL was given, and here is neither a run below runs/ nor a model file; name one, or train one with: "
        "smoothctl train"
    )


def load_model(
    path: Path | str,
    device: torch.device | str = "cpu",
    given: Assumptions | None = None,
    given_of_ours: Assumptions | None = None,
) -> Model:
    """Load a model file or run directory on a device, with all its weights or not at all.

    ``given`` is what the user says of it: needed for files of other code, checked against ours, unless
    ``given_of_ours`` is said of these. Raises UsageError if there is no file or something must be said, and
    SmoothctlError if it would run code or does not fit its architecture.
    """
    file = find_model_file(Path(path))
    content = read_content(file)
    given = given or Assumptions()
    held: Mapping[str, Tensor] | None = None
    state: Mapping[str, Tensor]
    if _is_ours(content):
        info, state = _read_own(file, content)
        info, held = _completed(file, info, given_of_ours or given), state
    else:
        info, state = _import(file, recognise(file, content, given), given)
    try:
        model = build_classifier(
            info.arch, len(info.class_names), info.input_shape, info.arch_options, info.mean, info.std,
            held=held, confirmed=given.arch_options,
        )  # fmt: skip
    except SmoothctlError as error:
        raise type(error)(f"{file} cannot be loaded: {error}") from None
    load_state(model.network, state, file, info.arch)
    return Model(model.to(device).eval().requires_grad_(False), info, file_sha256(file), file)


def lineage(teacher: Model | None) -> list[Ancestor]:
    """The chain of teachers, oldest first."""
    if teacher is None:
        return []
    own = Ancestor(sha256=teacher.sha256, **teacher.info.model_dump(include={"arch", "method", "sigma", "dataset"}))
    return [*teacher.info.lineage, own]


def _is_ours(content: Any) -> bool:
    return isinstance(content, dict) and content.get("format") == FORMAT


def _read_own(file: Path, content: dict[str, Any]) -> tuple[ModelInfo, dict[str, Tensor]]:
    try:
        info, state = ModelInfo(**content["info"]), content["state_dict"]
        if not all(isinstance(value, Tensor) for value in state.values()):
            raise TypeError("its weights are not tensors")
        return info, state
    except (ValidationError, TypeError, KeyError, AttributeError) as error:
        raise SmoothctlError(f"{file} has a damaged description ({' '.join(str(error).split())[:200]})") from None


def _completed(file: Path, info: ModelInfo, given: Assumptions) -> ModelInfo:
    """What a file of ours says of itself holds, and what it leaves open is taken from the user.

    Code of the user's own is run only if the user names it, and may have moved since.
    """
    if is_own(info.arch):
        if given.arch is None or not is_own(given.arch):
            raise UsageError(
                f"{file} was made with code of its author's own; to run that code, say `arch={info.arch}`, "
                "or where it is now"
            )
        info = info.model_copy(update={"arch": given.arch})
    elif given.arch is not None and canonical_arch(given.arch) != info.arch:
        raise UsageError(f"{file} says that its architecture is {info.arch}, not {given.arch}; leave `arch` out")
    if info.sigma is None:
        info = info.model_copy(update={"sigma": given.sigma})
    repeated = all(info.arch_options.get(name, ...) == value for name, value in given.arch_options.items())
    if given.state_key is not None or not repeated:
        flag = "`state_key`" if given.state_key is not None else "`arch_options`"
        raise UsageError(f"{file} is smoothctl's own and says everything of its weights; leave {flag} out")
    if given.normalize is not None:
        raise UsageError(f"{file} says how it normalizes ({describe(info.mean, info.std)}); leave `normalize` out")
    return info


def _import(file: Path, found: Recognised, given: Assumptions) -> tuple[ModelInfo, Mapping[str, Tensor]]:
    info = ModelInfo(
        arch=found.arch,
        arch_options=dict(given.arch_options),
        class_names=list(found.dataset.class_names),
        input_shape=found.input_shape,
        mean=list(found.mean),
        std=list(found.std),
        noise=given.noise or NOISE,
        sigma=found.sigma,
        method="unknown",
        dataset=found.dataset.name,
        epochs=found.epochs,
        origin=Origin(file=file.name, sha256=file_sha256(file)),
        plugins=provenance([registry().find("dataset", found.dataset.name)]),
        versions=versions(),
    )
    return info, found.weights.state


def require_sigma(asked: float | None, model: Model) -> float:
    """The sigma that was asked for, or that the model was trained for; raises UsageError if neither is known."""
    if asked is not None:
        return asked
    if not model.info.sigma:
        raise UsageError(f"{model.path} does not say for which sigma it was trained; give `sigma`")
    return model.info.sigma
