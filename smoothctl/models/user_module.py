"""A user's own network, without a plugin: ``--arch mypackage.module:build`` or ``--arch file.py:build``."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smoothctl.base.errors import UsageError
from smoothctl.hooks.networks import Architecture, ModelSpec
from smoothctl.hooks.registry import Registered, Source


def is_own(arch: str) -> bool:
    """Whether a name (or a member's name within it) stands for code of the user's own."""
    return ":" in arch


def load(arch: str) -> Registered:
    """Import the module and wrap what it names as an architecture. Raises UsageError if that fails."""
    place, _, name = arch.rpartition(":")
    _see(Path(place).resolve().parent if place.endswith(".py") else Path.cwd())
    try:
        module = _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except (Exception, SystemExit) as error:
        raise UsageError(f"`arch={arch}`: {place} cannot be imported ({type(error).__name__}: {error})") from error
    build = getattr(module, name, None)
    if not callable(build):
        raise UsageError(f"`arch={arch}`: {place} has nothing callable named {name!r}")
    architecture = Architecture(
        arch, lambda spec: _call(build, spec), summary=f"{name} of {place}", options=None, file_options=None
    )
    return Registered("architecture", architecture, Source("own module", place, getattr(module, "__version__", "")))


def _see(folder: Path) -> None:
    """Let modules of this folder be imported, after all that are installed."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _import_file(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"own_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As an import does: dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _call(build: Callable[..., Any], spec: ModelSpec) -> Any:
    """``build(num_classes=K, **options)`` if it takes that, ``build()`` if it needs nothing, else ``build(spec)``."""
    try:
        parameters = inspect.signature(build).parameters
    except ValueError:
        parameters = {}  # type: ignore[assignment]
    if "num_classes" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return build(num_classes=spec.num_classes, **spec.options)
    if spec.options and not parameters:
        raise UsageError(f"`arch_options`: {getattr(build, '__name__', 'the function')}() takes no options")
    needs = any(each.default is each.empty and each.kind is not each.VAR_POSITIONAL for each in parameters.values())
    return build(spec) if needs or "spec" in parameters else build()
