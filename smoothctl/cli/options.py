"""From declared settings to the flags of a command, and from what was given back to settings."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import (
    Option,
    Settings,
    as_typed,
    read_toml,
    settings_parameters,
    shown_as_flag,
    toml_name,
    validated,
)

OUTPUT = "Output"
METAVARS = {int: "INTEGER", float: "FLOAT", Path: "PATH"}


def _load_config(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None:
        command = str(context.info_name)
        known = {str(parameter.name) for parameter in context.command.params}
        values = read_toml(path, command)
        if unknown := sorted(set(values) - known):
            raise UsageError(f"--config: {path} sets {unknown[0]!r}, which {command} does not know")
        several = {str(parameter.name) for parameter in context.command.params if parameter.multiple}
        listed = {name: as_typed(value, name in several) for name, value in values.items()}
        context.default_map = {**(context.default_map or {}), **listed}
    return path


Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print exactly one JSON document on stdout.", show_envvar=False, rich_help_panel=OUTPUT
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print settings, plan and an estimate of the time; write nothing.", show_envvar=False,
        rich_help_panel=OUTPUT,
    ),
]  # fmt: skip
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", help="Settings from a TOML file: top-level values and a table per command.",
        callback=_load_config, is_eager=True, metavar="FILE.toml", show_envvar=False, rich_help_panel=OUTPUT,
    ),
]  # fmt: skip


_flags = {name: f"--{name}" for name in ("config", "json")} | {"dry_run": "--dry-run"}
"""The flag of each setting of the command that runs."""


def in_flags(message: str) -> str:
    """A message of the library as the command line puts it: settings in backquotes become flags of this command."""

    def flag(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in _flags:
            return found[0]
        return _flags[name] if value is None else f"{_flags[name]} {value}"

    return re.sub(r"`([a-z_][a-z_0-9]*)(?:=([^`\n]*))?`", flag, message)


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command flags for the fields of its settings; it is called with these settings, made and checked.

    Flags come in the order of the declarations, those without a panel first.
    """
    groups = settings_parameters(command)
    hints = inspect.get_annotations(command, eval_str=True)
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name])
        for each in inspect.signature(command).parameters.values()
        if each.name not in groups
    ]
    flags = {(name, field): _parameter(group, field) for name, group in groups.items() for field in group.declared()}
    arguments = [each for each in own if not _is_flag(each.annotation)]
    declared = [*flags.values(), *(each for each in own if _is_flag(each.annotation))]
    first = [each for each in declared if _panel(each.annotation) is None]
    rest = [each for each in declared if _panel(each.annotation) is not None]
    panels = list(dict.fromkeys(_panel(each.annotation) for each in rest))
    rest.sort(key=lambda each: (_panel(each.annotation) == OUTPUT, panels.index(_panel(each.annotation))))

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        made = {}
        _flags.update((field, shown_as_flag(group, field)) for group in groups.values() for field in group.declared())
        for name, group in groups.items():
            mine = {field: values.pop(flags[name, field].name) for field in group.declared()}
            given = {field: value for field, value in mine.items() if value not in (None, False, [])}
            given |= {field: False for field, value in mine.items() if value is False and _takes_no(group, field)}
            made[name] = validated(group, given, shown=functools.partial(shown_as_flag, group))
        command(**values, **made)

    wrapped.__signature__ = inspect.Signature([*arguments, *first, *rest])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in (*arguments, *first, *rest)}
    return wrapped


def _names(field: str, option: Option) -> tuple[str, ...]:
    return option.names or ("--" + field.replace("_", "-"),)


def _takes_no(group: type[Settings], field: str) -> bool:
    return "/" in _names(field, group.declared()[field])[0]


def _parameter(group: type[Settings], field: str) -> inspect.Parameter:
    """The command line's parameter for a field: texts as they were typed, which the settings read."""
    option, info = group.declared()[field], group.model_fields[field]
    names = _names(field, option)
    kind = _plain_type(info.annotation)
    said = (
        f" [default: {told}]" if (told := option.default or _shown(info.get_default(call_default_factory=True))) else ""
    )
    if kind is bool:
        annotation: Any = bool | None if "/" in names[0] else bool
        default: Any = None if "/" in names[0] else False
    elif option.repeated:
        annotation, default = list[str] | None, None
    else:
        annotation, default = (Path if kind is Path else str) | None, None
    flag = typer.Option(
        *names, help=option.help + said, show_default=False, show_envvar=False,
        metavar=None if kind is bool else option.metavar or METAVARS.get(kind, "TEXT"),
        rich_help_panel=option.panel or None,
    )  # fmt: skip
    return inspect.Parameter(
        toml_name(field, option),
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, flag],
    )


def _plain_type(annotation: Any) -> Any:
    """``int`` of ``Annotated[int, ...] | None``; ``str`` for anything that is typed as a text."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return str if get_origin(annotation) is Literal else annotation


def _shown(default: Any) -> str:
    if default in (None, False, True, "", (), {}):
        return ""
    return f"{default:g}" if isinstance(default, float) else str(default)


def _is_flag(annotation: Any) -> bool:
    return any(isinstance(part, typer.models.OptionInfo) for part in get_args(annotation))


def _panel(annotation: Any) -> str | None:
    return next(part.rich_help_panel for part in get_args(annotation) if isinstance(part, typer.models.OptionInfo))


def show_settings(settings: Mapping[str, Any]) -> list[str]:
    """Settings as lines, for a dry run."""
    width = max(map(len, settings))
    return [f"  {name:<{width}}  {value}" for name, value in settings.items()]
