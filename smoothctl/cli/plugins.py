"""``smoothctl plugins``"""

from __future__ import annotations

import json as json_format
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smoothctl.base import console
from smoothctl.base.about import __version__
from smoothctl.base.settings import flag_name
from smoothctl.cli import options

if TYPE_CHECKING:
    from smoothctl.hooks.registry import Registered

NAME = "plugins"
NEW = "new"
EXAMPLES = (
    "Examples: `smoothctl plugins`; `smoothctl plugins crt`; `smoothctl plugins macer --json`; "
    "`smoothctl plugins new my-noise --noise`"
)
HEADINGS = {
    "method": "methods: train --method NAME",
    "architecture": "architectures: train --arch NAME",
    "dataset": "datasets: --dataset NAME",
    "noise": "noises: --noise NAME",
    "rule": "stopping rules: certify --rule NAME",
    "backend": "backends: --backend NAME",
    "importer": "importers of checkpoints: used by themselves",
    "tracker": "trackers: train --track NAME",
    "table": "tables: report --show NAME",
    "plot": "plots: report --plot NAME",
}
WIDTH, COLUMN = 80, 16


def _flag(kind: str) -> Any:
    return typer.Option(f"--{kind}", help=f"Write a {kind}.", rich_help_panel="With new")


def command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Explain what has this name.")] = None,
    package: Annotated[
        str | None, typer.Argument(metavar="[new PACKAGE]", help="Write a new package of plugins, with its tests.")
    ] = None,
    method: Annotated[bool, _flag("method")] = False,
    architecture: Annotated[bool, _flag("architecture")] = False,
    dataset: Annotated[bool, _flag("dataset")] = False,
    noise: Annotated[bool, _flag("noise")] = False,
    rule: Annotated[bool, _flag("rule")] = False,
    backend: Annotated[bool, _flag("backend")] = False,
    importer: Annotated[bool, _flag("importer")] = False,
    tracker: Annotated[bool, _flag("tracker")] = False,
    table: Annotated[bool, _flag("table")] = False,
    plot: Annotated[bool, _flag("plot")] = False,
    json: options.Json = False,
) -> None:
    """List everything that is registered, where it comes from, and what failed; or write a package of your own.

    `smoothctl plugins new PACKAGE --noise` writes a package with a noise, and tests that pass as they are; several
    kinds may be asked for, and a method is written if none is.
    """
    from smoothctl.hooks.registry import KINDS, registry

    asked = {
        "method": method, "architecture": architecture, "dataset": dataset, "noise": noise, "rule": rule,
        "backend": backend, "importer": importer, "tracker": tracker, "table": table, "plot": plot,
    }  # fmt: skip
    kinds = [kind for kind, wanted in asked.items() if wanted]
    if name == NEW:
        _write(package, kinds or ["method"], json)
        return
    _require_new(package, kinds)
    if name is not None:
        _explain(name, json)
        return
    plugins = registry()
    if json:
        entries = [_plain(entry) for kind in KINDS for entry in plugins.all(kind)]
        failures = [{"plugin": vars(failure.source), "reason": failure.reason} for failure in plugins.failures]
        console.result(json_format.dumps({"plugins": entries, "failures": failures}, indent=2))
        return
    console.result("\n\n".join("\n".join(_listed(kind, plugins.all(kind))) for kind in KINDS))
    console.result(f"\nOf smoothctl {__version__}, but for those that name their package in brackets.")
    for failure in plugins.failures:
        console.result(f"set aside: {failure.source}: {failure.reason}")


def _require_new(package: str | None, kinds: list[str]) -> None:
    from smoothctl.base.errors import UsageError

    if package is not None or kinds:
        what = f"--{kinds[0]}" if kinds else package
        raise UsageError(f"{what} belongs to: smoothctl plugins new PACKAGE")


def _write(package: str | None, kinds: list[str], as_json: bool) -> None:
    from smoothctl.base.errors import UsageError
    from smoothctl.scaffold.package import write_package

    if package is None:
        raise UsageError("how is the package to be called? smoothctl plugins new PACKAGE, such as my-noise")
    written = write_package(package, kinds, Path())
    if as_json:
        console.result(json_format.dumps({"files": [str(path) for path in written]}, indent=2))
        return
    for path in written:
        console.result(str(path))
    console.result(f"next: pip install -e '{package}[test]' && pytest {package}")


def _listed(kind: str, entries: list[Registered]) -> list[str]:
    """The names of a kind with what they are, folded at 80 columns, and their package if it is another one."""
    from smoothctl.hooks.registry import is_built_in

    lines = [HEADINGS.get(kind, kind)]
    for entry in entries:
        source = entry.source
        told = f"{entry.value.summary}{'' if is_built_in(source) else f' [{source.distribution} {source.version}]'}"
        also = f" (also {', '.join(entry.names[1:])})" if entry.names[1:] else ""
        first = f"  {entry.name:<{COLUMN}} "
        if len(entry.name) > COLUMN:
            lines.append(f"  {entry.name}")
            first = " " * (COLUMN + 3)
        lines += textwrap.wrap(told + also, WIDTH, initial_indent=first, subsequent_indent=" " * (COLUMN + 3))
    return lines


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
