"""Validated settings, each declared once: as a field with its type, its default and an :class:`Option`.

From the field follow the flag of the command line, its help, the environment variable
(``SMOOTHCTL_TRAIN_SIGMA``), the name in a TOML file, the argument in Python, and what goes on record.
"""

from __future__ import annotations

import functools
import inspect
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from smoothctl.base.errors import UsageError

COMMANDS = ("train", "transfer", "certify", "predict", "attack", "report", "convert", "plugins")
THOUSANDS = {"": 1, "k": 10**3, "m": 10**6}


@dataclass(frozen=True)
class Option:
    """How people are told of a field, and how they give it on a command line.

    ``names`` are its flags (one made from the field's name if empty); ``default`` is what help says where the
    default depends on something else; ``panel`` groups it in the help; ``repeated`` takes the flag several times.
    """

    help: str
    names: tuple[str, ...] = ()
    metavar: str = ""
    default: str = ""
    panel: str = ""
    repeated: bool = False


def _whole_number(value: Any) -> Any:
    """``1e5``, ``100_000`` and ``100k`` as numbers; whatever else is left to the type's own check."""
    found = re.fullmatch(r"\s*([\d_.,]+(?:[eE]\+?\d+)?)\s*([kKmM]?)\s*", value) if isinstance(value, str) else None
    if found is None:
        return value
    try:
        number = Decimal(found[1].replace("_", "").replace(",", "")) * THOUSANDS[found[2].lower()]
    except InvalidOperation:
        return value
    return int(number) if number < 10**20 and number == int(number) else value


def listed(value: Any) -> Any:
    """A text such as ``0,0.25,0.5`` as its parts."""
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _numbers(value: Any) -> Any:
    """A text such as ``0,0.25,0.5`` as its parts; raises ValueError for one without any."""
    parts = listed(value)
    if isinstance(value, str) and not parts:
        raise ValueError("write numbers such as 0,0.25,0.5")
    return parts


def _pairs(value: Any) -> Any:
    """Texts such as ``name=value`` as a mapping; raises ValueError for one without an equals sign."""
    if isinstance(value, Mapping):
        return {str(name).replace("-", "_"): part for name, part in value.items()}
    read = {}
    for text in [value] if isinstance(value, str) else value:
        name, equals, part = str(text).partition("=")
        if not equals or not name:
            raise ValueError(f"write {text} as name=value")
        read[name.strip().replace("-", "_")] = part.strip()
    return read


Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, BeforeValidator(_whole_number), Field(ge=1, le=10**9)]
Index = Annotated[int, BeforeValidator(_whole_number), Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]


Probability = Annotated[float, Field(gt=0, lt=0.5)]
"""Of being wrong, such as alpha: from one half on, a guarantee says nothing."""


Radius = Annotated[float, Field(ge=0)]
Radii = Annotated[tuple[Radius, ...], BeforeValidator(_numbers)]
Indices = Annotated[tuple[Index, ...], BeforeValidator(listed)]
Pairs = Annotated[dict[str, Any], BeforeValidator(_pairs)]


class Settings(BaseModel):
    """Settings that belong together; unknown names and values out of range are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def declared(cls) -> dict[str, Option]:
        """The fields that people may give, in order; the others are the program's own."""
        found = {}
        for name, field in cls.model_fields.items():
            option = next((part for part in field.metadata if isinstance(part, Option)), None)
            if option is not None:
                found[name] = option
        return found

    def given(self) -> dict[str, Any]:
        """The fields that somebody gave, whether or not they equal the defaults."""
        return {name: getattr(self, name) for name in self.model_fields_set}


T = TypeVar("T", bound=BaseModel)


def validated(model: type[T], values: Mapping[str, Any], shown: Callable[[str], str] = str) -> T:
    """Make settings; what is wrong becomes one UsageError line, with fields named as ``shown`` names them."""
    try:
        return model(**values)
    except ValidationError as error:
        raise UsageError("; ".join(dict.fromkeys(_problem(item, shown) for item in error.errors()))) from None
    except UnicodeEncodeError as error:
        raise UsageError(f"{error.object!r} holds bytes that are no letters") from None


def _problem(item: Any, shown: Callable[[str], str]) -> str:
    name = shown(str(item["loc"][0])) if item["loc"] else ""
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        return f"{name}: there is no such setting"
    return f"{name}{': ' if name else ''}{message[:1].lower()}{message[1:]} (got {item['input']!r})"


def settings_parameters(function: Callable[..., Any]) -> dict[str, type[Settings]]:
    """The parameters of a function that are settings, by name."""
    hints = inspect.get_annotations(function, eval_str=True)
    return {
        name: hint
        for name, hint in hints.items()
        if name != "return" and isinstance(hint, type) and issubclass(hint, Settings)
    }


R = TypeVar("R")


def keyword_settings(function: Callable[..., R]) -> Callable[..., R]:
    """Let a function be called with the fields of its settings as keyword arguments.

    A parameter whose type is a Settings class is made from those fields, or given whole by its own name.
    """
    groups = settings_parameters(function)
    own = [each for each in inspect.signature(function).parameters.values() if each.name not in groups]
    fields = {field: group for group in groups.values() for field in group.declared()}

    @functools.wraps(function)
    def call(*arguments: Any, **given: Any) -> R:
        for name, group in groups.items():
            mine = {field: given.pop(field) for field, home in fields.items() if home is group and field in given}
            if name not in given:
                given[name] = validated(group, {key: value for key, value in mine.items() if value is not None})
            elif mine:
                raise UsageError(f"give either {name} or {', '.join(mine)}")
        return function(*arguments, **given)

    keywords = [
        inspect.Parameter(
            field,
            inspect.Parameter.KEYWORD_ONLY,
            default=group.model_fields[field].get_default(call_default_factory=True),
            annotation=group.model_fields[field].annotation,
        )
        for field, group in fields.items()
    ]
    call.__signature__ = inspect.Signature([*own, *keywords])  # type: ignore[attr-defined]
    return call


def toml_name(field: str, option: Option) -> str:
    """The name of a field in TOML files and environment variables: that of its first flag."""
    return option.names[0].split("/")[0].removeprefix("--").replace("-", "_") if option.names else field


def flag_name(field: str, option: Option) -> str:
    """The flag of a field, as messages name it."""
    return "--" + toml_name(field, option).replace("_", "-")


def shown_as_flag(group: type[Settings], field: str) -> str:
    """The flag of a field of some settings; a field that has none by its own name."""
    option = group.declared().get(field)
    return field if option is None else flag_name(field, option)


def as_typed(value: Any, repeated: bool = False) -> Any:
    """A value of a TOML file as a command line would have it: tables as name=value, lists with commas."""
    if isinstance(value, dict):
        return [f"{name}={part}" for name, part in value.items()]
    if repeated:
        return list(map(str, value)) if isinstance(value, list) else [str(value)]
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, bool) else str(value)


def settings_from_toml(path: Path, command: str, groups: Sequence[type[Settings]]) -> list[Settings]:
    """The settings of a command that a TOML file gives; raises UsageError for what is not one of them."""
    values = read_toml(path, command)
    made = []
    for group in groups:
        options = group.declared()
        names = {toml_name(field, option): field for field, option in options.items()}
        mine = {
            names[name]: as_typed(values.pop(name), options[names[name]].repeated)
            for name in list(values)
            if name in names
        }
        made.append(validated(group, mine, shown=functools.partial(shown_as_flag, group)))
    if values:
        raise UsageError(f"`config`: {path} sets {next(iter(values))!r}, which {command} does not know")
    return made


def read_toml(path: Path, command: str) -> dict[str, Any]:
    """Defaults for one command: the file's top-level values, then those of its ``[command]`` table.

    Raises UsageError for what cannot be read, and for a table of no command.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"`config`: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"`config`: {path} is not valid TOML: {error}") from None
    tables = [name for name, value in content.items() if isinstance(value, dict)]
    if strange := [name for name in tables if name not in COMMANDS]:
        raise UsageError(f"`config`: {path} has a table [{strange[0]}], but the commands are {', '.join(COMMANDS)}")
    own = content.get(command, {})
    if not isinstance(own, dict):
        raise UsageError(f"`config`: {path}: {command} is a table, [{command}], of that command's settings")
    values = {**{key: value for key, value in content.items() if not isinstance(value, dict)}, **own}
    return {key.replace("-", "_"): value for key, value in values.items()}
