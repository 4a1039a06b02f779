"""docs/methods.md is held against the methods: sections, recipes, and the costs that it states."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from smoothctl.hooks.datasets import ArrayImages
from smoothctl.hooks.registry import registry
from smoothctl.models.checkpoint import load_model
from smoothctl.training.settings import TrainSettings, method_options
from smoothctl.training.trainer import Execution, Trainer, TrainingData

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "methods.md").read_text()
OWN = [entry for entry in registry().all("method") if entry.value.__module__.startswith("smoothctl_plugins.")]
METHODS = {entry.name: entry.value for entry in OWN}
SMALL = {"m": 3, "k": 2, "steps": 3, "T": 1}


@dataclass(frozen=True)
class Line:
    """A line of the table: formulas in the names of the options."""

    name: str
    options: dict[str, str]
    passes: str
    by_default: int
    teacher: str


def table() -> list[Line]:
    lines = []
    for row in re.findall(r"^\| \[`.*$", PAGE, flags=re.MULTILINE):
        head, _, passes, by_default, teacher = (cell.strip() for cell in row.strip("|").split("|"))
        names = re.findall(r"`([^`]+)`", head)
        options = dict(option.removeprefix("-o ").split("=") for option in names[1:])
        assert f"(#{names[0]})" in head
        lines.append(Line(names[0], options, passes.strip("`"), int(by_default), teacher.strip("`")))
    return lines


def counted(name: str, options: dict[str, Any], teacher_at: Path) -> dict[str, float]:
    """What a step really takes of each image."""
    dataset = registry().find("dataset", "digits").value
    images = dataset.load("train", None, False)
    few = ArrayImages(images.images[:12], images.labels[:12])
    takes = METHODS[name].needs_teacher or METHODS[name].takes_teacher
    settings = TrainSettings(method=name, arch="lenet", batch_size=8, options=options)
    teacher = load_model(teacher_at) if takes else None
    return Trainer(settings, TrainingData(dataset, few, few), Execution(torch.device("cpu")), teacher).estimate().passes


def stated(formula: str, name: str, options: dict[str, Any]) -> float:
    values = method_options(METHODS[name], options).model_dump()
    return float(eval(formula, {"__builtins__": {}}, values)) if formula else 0.0


def test_every_method_has_a_line_and_a_section() -> None:
    assert {line.name for line in table()} == set(METHODS)
    assert set(METHODS) <= set(re.findall(r"^## (.*)$", PAGE, flags=re.MULTILINE))


@pytest.mark.parametrize("line", table(), ids=lambda line: "-".join([line.name, *line.options.values()]))
@pytest.mark.parametrize("small", [False, True])
def test_the_stated_costs_are_those_that_are_counted(line: Line, small: bool, trained: Path) -> None:
    known = METHODS[line.name].Options.model_fields
    options: dict[str, Any] = {**line.options, **({k: v for k, v in SMALL.items() if k in known} if small else {})}
    passes = stated(line.passes, line.name, options)
    assert counted(line.name, options, trained) == {
        "forward_passes": passes,
        "backward_passes": passes,
        "teacher_passes": stated(line.teacher, line.name, options),
    }
    if not small:
        assert passes == line.by_default


@pytest.mark.parametrize("name", METHODS)
def test_a_section_names_the_recipes_that_ship(name: str) -> None:
    section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    sigmas: dict[str, set[float]] = {}
    for recipe in METHODS[name].recipes:
        assert not recipe.name or f"`{recipe.name}`" in section
        if recipe.dataset is not None:
            sigmas.setdefault(recipe.dataset, set()).update([recipe.sigma] if recipe.sigma else [])
    line = "; ".join(
        f"`{dataset}`" + (f" at {', '.join(f'{sigma:g}' for sigma in sorted(found))}" if found else "")
        for dataset, found in sigmas.items()
    )
    assert f"Recipes: {line}." in section
