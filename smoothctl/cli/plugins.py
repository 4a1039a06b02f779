"""``smoothctl plugins``"""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smoothctl.base import console
from smoothctl.base.settings import flag_name
from smoothctl.cli import options

if TYPE_CHECKING:
    from smoothctl.hooks.registry import Registered

NAME = "plugins"
EXAMPLES = "Examples: `smoothctl plugins`; `smoothctl plugins crt`"


def command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Explain what has this name.")] = None,
    json: options.Json = False,
) -> None:
    """List methods, architectures, datasets and noises, where they come from, and what failed."""
    from smoothctl.hooks.registry import KINDS, registry

    plugins = registry()
    if name is not None:
        _explain(name, json)
        return
    entries = [entry for kind in KINDS for entry in plugins.all(kind)]
    if json:
        failures = [{"plugin": vars(failure.source), "reason": failure.reason} for failure in plugins.failures]
        console.result(
            json_format.dumps({"plugins": [_plain(entry) for entry in entries], "failures": failures}, indent=2)
        )
        return
    rows = [
        [entry.kind, entry.name, ", ".join(entry.names[1:]), entry.value.summary, str(entry.source)]
        for entry in entries
    ]
    console.table(rows, ["kind", "name", "also", "what it is", "from"])
    for failure in plugins.failures:
        console.result(f"set aside: {failure.source}: {failure.reason}")


def _explain(name: str, as_json: bool) -> None:
    from smoothctl.base.errors import UsageError
    from smoothctl.hooks.registry import KINDS, registry

    found = []
    unknown = []
    for kind in KINDS:
        try:
            family = registry().by_name[kind].get(name)
            found.append(family or registry().find(kind, name))
        except UsageError as error:
            unknown.append(str(error).split(" Available:")[0].removeprefix(f"unknown {kind} "))
    if not found:
        raise UsageError(f"nothing is registered as {name!r}; smoothctl plugins lists what is" + _hint(unknown))
    if as_json:
        console.result(json_format.dumps({"plugins": [_plain(entry) for entry in found]}, indent=2))
        return
    for entry in found:
        console.result("\n".join(_lines(entry)))


def _hint(unknown: list[str]) -> str:
    hints = [text.split("Did you mean ")[1].split("?")[0] for text in unknown if "Did you mean " in text]
    return f". Did you mean {' or '.join(hints)}?" if hints else ""


def _lines(entry: Registered) -> list[str]:
    value = entry.value
    lines = [f"{entry.kind} {entry.name}: {value.summary}", f"  from {entry.source}"]
    if entry.names[1:]:
        lines.append(f"  also {', '.join(entry.names[1:])}")
    if entry.kind == "method":
        commands = "transfer" if value.needs_teacher else "train and transfer" if value.takes_teacher else "train"
        lines += [f"  used by smoothctl {commands}"]
        lines += ["  options (-o name=value):" if value.Options.model_fields else "  no options"]
        lines += [f"    {option['name']} = {option['default']}: {option['description']}" for option in _options(value)]
        lines += [f"  recipe{' ' * bool(recipe.name)}{recipe.name}: {_recipe(recipe)}" for recipe in value.recipes]
    elif entry.kind == "dataset":
        shape, classes = value.shape or "of the files' shape", len(value.class_names) or "the files'"
        lines.append(f"  images {shape}, {classes} classes, splits {', '.join(value.splits) or 'of the files'}")
        lines += [f"  recipe: {_recipe(value.recipe)}"] if _recipe(value.recipe) else []
    elif entry.kind == "architecture":
        if value.example:
            lines.append(f"  a family: write it as --arch {entry.name}{value.example}")
        known = value.options or {}
        lines += [f"  --arch-option {name}: {meaning}" for name, meaning in known.items()]
        lines += [f"  published for {value.dataset}"] if value.dataset else []
    elif entry.kind == "rule":
        lines += [
            f"  certify {flag_name(name, option)}: {option.help}" for name, option in value.Options.declared().items()
        ]
        lines.append(f"  n: {value.default_n} at most, if none is given; bounds: {', '.join(value.bounds)}")
    elif entry.kind == "noise":
        lines.append(f"  certifies radii in the {value.norm} norm")
    return lines


def _options(method: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, "default": field.default, "description": field.description or ""}
        for name, field in method.Options.model_fields.items()
    ]


def _recipe(recipe: Any) -> str:
    stated = [
        f"{key}={value}"
        for key, value in recipe.plain().items()
        if value not in (None, {}, "") and key not in ("source", "name")
    ]
    return ", ".join(stated) + (f" ({recipe.source})" if recipe.source else "")


def _plain(entry: Registered) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "kind": entry.kind, "aliases": list(entry.names[1:]), "summary": entry.value.summary, **entry.provenance(),
    }  # fmt: skip
    if entry.kind == "method":
        plain["options"] = _options(entry.value)
        plain["recipes"] = [recipe.plain() for recipe in entry.value.recipes]
    return plain
