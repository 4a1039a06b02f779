"""Validated settings: flag > environment > TOML file > recipe > default."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from smoothctl.base.errors import UsageError

Positive = Annotated[float, Field(gt=0)]


Count = Annotated[int, Field(ge=1, le=10**9)]


Index = Annotated[int, Field(ge=0)]


Seed = Annotated[int, Field(ge=0, lt=2**64)]


Probability = Annotated[float, Field(gt=0, lt=0.5)]
"""Of being wrong, such as alpha: from one half on, a guarantee says nothing."""


Radius = Annotated[float, Field(ge=0)]


class Settings(BaseModel):
    """Settings of one command; unknown names and values out of range are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


T = TypeVar("T", bound=BaseModel)


def validated(model: type[T], values: Mapping[str, Any], prefix: str = "--") -> T:
    """Make settings; what is wrong becomes one UsageError line that names the flags."""
    try:
        return model(**values)
    except ValidationError as error:
        problems = [
            f"{prefix}{_flag(item['loc'])}: {item['msg'][:1].lower()}{item['msg'][1:]} (got {item['input']!r})"
            for item in error.errors()
        ]
        raise UsageError("; ".join(problems)) from None


def _flag(location: tuple[int | str, ...]) -> str:
    return str(location[0]).replace("_", "-") if location else ""


def read_toml(path: Path, command: str) -> dict[str, Any]:
    """Defaults for one command: the file's top-level values, then those of its ``[command]`` table."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--config: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--config: {path} is not valid TOML: {error}") from None
    own = content.get(command, {})
    if not isinstance(own, dict):
        raise UsageError(f"--config: {path}: {command} is a table, [{command}], of that command's settings")
    values = {**{key: value for key, value in content.items() if not isinstance(value, dict)}, **own}
    return {key.replace("-", "_"): value for key, value in values.items()}
