"""Model files: plain tensors and plain data, which can be loaded without running any code."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor, nn

from smoothctl.errors import SmoothctlError, UsageError
from smoothctl.models import BaseClassifier, build_network
from smoothctl.outputs import replace_file
from smoothctl.plugins import registry

FORMAT = "smoothctl-model-1"
MODEL_FILE = "model.pt"


class Ancestor(BaseModel):
    """A teacher in a model's lineage."""

    arch: str
    method: str
    sigma: float
    dataset: str
    sha256: str


class ModelInfo(BaseModel):
    """What a model file says of itself."""

    model_config = ConfigDict(extra="ignore")

    arch: str
    arch_options: dict[str, Any] = Field(default_factory=dict)
    class_names: list[str]
    input_shape: tuple[int, int, int]
    mean: list[float]
    std: list[float]
    noise: str
    sigma: float
    method: str
    method_options: dict[str, Any] = Field(default_factory=dict)
    dataset: str
    seed: int
    epochs: int
    lineage: list[Ancestor] = Field(default_factory=list)
    plugins: dict[str, dict[str, str]] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """A model that was loaded: the base classifier in eval mode, frozen, and where it came from."""

    classifier: nn.Module
    info: ModelInfo
    sha256: str
    path: Path


def save_model(path: Path, info: ModelInfo, state: Mapping[str, Tensor]) -> None:
    """Write a model file atomically: ``.safetensors`` by that ending, else torch's format."""
    tensors = {key: value.detach().cpu().contiguous() for key, value in state.items()}
    described = info.model_dump(mode="json")
    if path.suffix == ".safetensors":
        from safetensors.torch import save_file

        metadata = {"format": FORMAT, "info": json.dumps(described)}
        replace_file(path, lambda temporary: save_file(tensors, temporary, metadata))
    else:
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
        raise UsageError(f"there is no model at {path}")
    return path


def newest_run(root: Path) -> Path:
    """The run below ``root`` whose model was written last; raises UsageError if there is none."""
    models = sorted(root.glob(f"**/{MODEL_FILE}"), key=lambda path: path.stat().st_mtime)
    if not models:
        raise UsageError(f"no MODEL was given and there is no run below {root}/; train one with: smoothctl train")
    return models[-1].parent


def load_model(path: Path | str, device: torch.device | str = "cpu") -> Model:
    """Load a model file or run directory on a device, with all its weights or not at all.

    Raises UsageError if there is no file and SmoothctlError if it is not a model of ours, would
    run code, or does not fit its architecture.
    """
    file = find_model_file(Path(path))
    info, state = _read(file)
    entry = registry().find("architecture", info.arch)
    network = build_network(entry, info.arch, len(info.class_names), info.input_shape, info.arch_options)
    _load_state(network, state, file)
    classifier = BaseClassifier(network, info.mean, info.std).to(device).eval().requires_grad_(False)
    return Model(classifier, info, file_sha256(file), file)


def _read(file: Path) -> tuple[ModelInfo, dict[str, Tensor]]:
    if file.suffix == ".safetensors":
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(file, "pt") as handle:
                metadata = handle.metadata() or {}
                tensors = {key: handle.get_tensor(key) for key in handle.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise SmoothctlError(f"{file} is not a safetensors file ({error})") from None
        content: Any = {
            "format": metadata.get("format"),
            "info": json.loads(metadata.get("info", "null")),
            "state_dict": tensors,
        }
    else:
        try:
            content = torch.load(file, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError:
            raise SmoothctlError(
                f"{file} holds Python objects beside tensors and plain data; "
                "loading it could run code, so it is refused"
            ) from None
        except (RuntimeError, EOFError, OSError, KeyError, ValueError) as error:
            raise SmoothctlError(f"{file} is not a model file ({' '.join(str(error).split())[:120]})") from None
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        keys = ", ".join(map(str, list(content)[:8])) if isinstance(content, dict) else type(content).__name__
        raise SmoothctlError(f"{file} is not a smoothctl model (found: {keys})")
    try:
        return ModelInfo(**content["info"]), content["state_dict"]
    except (ValidationError, TypeError) as error:
        raise SmoothctlError(f"{file} has a damaged description ({' '.join(str(error).split())[:200]})") from None


def _load_state(network: nn.Module, state: Mapping[str, Tensor], file: Path) -> None:
    """Load all weights; raises SmoothctlError that lists what is missing, left over or misshapen."""
    own = network.state_dict()
    missing = [key for key in own if key not in state]
    extra = [key for key in state if key not in own]
    shapes = [key for key in own if key in state and own[key].shape != state[key].shape]
    if missing or extra or shapes:
        matched = len(own) - len(missing) - len(shapes)
        parts = [f"{matched} of {len(own)} tensors matched"]
        for what, keys in (("missing", missing), ("left over", extra), ("of another shape", shapes)):
            if keys:
                parts.append(f"{len(keys)} {what}, such as {', '.join(keys[:3])}")
        raise SmoothctlError(f"{file} does not fit its architecture: {'; '.join(parts)}")
    network.load_state_dict(dict(state), strict=True)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def check_classes(model: Model, class_names: tuple[str, ...], dataset: str) -> None:
    """Raise UsageError unless a model's classes are those of a dataset, in the same order."""
    names = model.info.class_names
    if len(names) != len(class_names):
        raise UsageError(f"{model.path} has {len(names)} classes, dataset {dataset} has {len(class_names)}")
    for place, (own, other) in enumerate(zip(names, class_names, strict=True)):
        if own != other:
            raise UsageError(
                f"{model.path} has class {place} = {own!r}, dataset {dataset} has {other!r}: "
                "the labels would not mean the same"
            )
