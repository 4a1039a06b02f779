"""The recipe that a run follows, brought to its number of epochs, and what is said of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import validated
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.methods import Method
from smoothctl.hooks.recipes import Recipe
from smoothctl.hooks.registry import registry
from smoothctl.training.settings import TrainSettings, method_options

IN_EPOCHS = "epochs"
"""The ``unit`` by which an option of a method says that it counts epochs, so that it scales with them."""


@dataclass(frozen=True)
class Choice:
    """A recipe as a run follows it, as it was ``written``, for which sigma (None: any), and the names of others."""

    recipe: Recipe
    written: Recipe
    sigma: float | None = None
    others: tuple[str, ...] = ()

    def describe(self, settings: TrainSettings) -> list[str]:
        """What should be said of it: its source, other recipes, and what was changed to fit."""
        recipe = self.recipe
        if not recipe.source:
            return []
        other = self.sigma is not None and self.sigma != settings.sigma
        meant = f", which is for sigma {self.sigma:g}: the nearest that there is" if other else ""
        named = f"{recipe.name}, " if recipe.name else ""
        lines = [f"recipe: {named}{recipe.source}{meant}; flags override it (`dry_run` shows every setting)"]
        if self.others:
            lines.append(f"other recipes: `recipe={' or '.join(self.others)}`")
        if changed := self._changes(settings):
            epochs = _epochs(self.written)
            lines.append(f"the recipe is for {epochs} epochs; scaled to {settings.epochs}: {', '.join(changed)}")
        return lines

    def _changes(self, settings: TrainSettings) -> list[str]:
        """What scaling changed and the user did not set."""
        now, before = ({**recipe.settings, **recipe.options} for recipe in (self.recipe, self.written))
        own = {**settings.model_dump(), **settings.options}
        names = [name for name in now if name not in ("epochs", "options") and now[name] != before.get(name)]
        return [f"{name} {_shown(now[name])}" for name in names if own[name] == now[name]]


def choose_recipe(method: type[Method], dataset: Dataset, sigma: float | None, name: str | None = None) -> Choice:
    """The method's recipe for a dataset at the nearest sigma, over the dataset's own.

    A method that has none for the dataset takes those for the dataset that it is ``like``, with its own schedule.
    Raises UsageError for a name that there is not.
    """
    candidates = recipes_for(method, dataset)
    names = tuple(dict.fromkeys(recipe.name for recipe in candidates if recipe.name))
    if name is not None:
        if name not in names:
            there = f"it has {', '.join(names)}" if names else "it has no named recipes"
            raise UsageError(f"`recipe={name}`: method {method.name} has no such recipe for {dataset.name}; {there}")
        candidates = [recipe for recipe in candidates if recipe.name == name]
    else:
        candidates = [recipe for recipe in candidates if recipe.dataset is not None]
    if not candidates:
        return Choice(dataset.recipe, dataset.recipe, others=names)
    target = sigma if sigma is not None else (dataset.recipe.sigma or TrainSettings().sigma)
    nearest = min(candidates, key=lambda recipe: abs((recipe.sigma or target) - target))
    merged = nearest.replace(**{**dataset.recipe.settings, **nearest.settings})
    return Choice(merged, merged, nearest.sigma, tuple(other for other in names if other != nearest.name))


def recipes_for(method: type[Method], dataset: Dataset) -> list[Recipe]:
    """A method's recipes for a dataset, or else those for the dataset that it is like, adapted to it.

    Those that are for any dataset come last, and are used by name only.
    """
    own = [recipe for recipe in method.recipes if recipe.dataset == dataset.name]
    if not own and dataset.like:
        own = [_adapted(recipe, method, dataset) for recipe in method.recipes if recipe.dataset == dataset.like]
    return own + [recipe for recipe in method.recipes if recipe.dataset is None and recipe.name]


def _adapted(recipe: Recipe, method: type[Method], dataset: Dataset) -> Recipe:
    """A recipe with the architecture and the schedule of another dataset, at the lower of the two rates."""
    own = dataset.recipe
    scaled = scale(recipe, method, _epochs(own))
    rates = [rate for rate in (recipe.settings.get("lr"), own.settings.get("lr")) if rate is not None]
    schedule = {key: value for key, value in own.settings.items() if key in ("arch", "epochs", "milestones")}
    source = f"smoothctl's default for {dataset.name}, after {recipe.dataset}: {recipe.source}"
    return scaled.replace(dataset.name, source, **schedule, **({"lr": min(rates)} if rates else {}))


def _epochs(recipe: Recipe) -> int:
    """The epochs of a recipe, or the default."""
    return int(recipe.settings.get("epochs", TrainSettings().epochs))


def scale(recipe: Recipe, method: type[Method], epochs: int) -> Recipe:
    """A recipe with everything that counts epochs in proportion to another number of them.

    That is milestones, warm-up, and the options of the method that say so by ``unit``; a drop of the rate is never
    in the first epoch, nor in that of another drop.
    """
    before = _epochs(recipe)
    if before == epochs:
        return recipe
    counted = {
        name: field.default
        for name, field in method.Options.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("unit") == IN_EPOCHS
    }
    lengths = {name: recipe.options.get(name, default) for name, default in counted.items()}
    options = {name: round(length * epochs / before) for name, length in lengths.items() if length}
    changes: dict[str, Any] = {"epochs": epochs, "options": {**recipe.options, **options}}
    if drops := recipe.settings.get("milestones"):
        changes["milestones"] = [max(place, round(drop * epochs / before)) for place, drop in enumerate(drops, start=1)]
    if warmup := recipe.settings.get("warmup_epochs"):
        changes["warmup_epochs"] = round(warmup * epochs / before)
    return recipe.replace(**changes)


def follow_recipe(
    given: Mapping[str, Any], method: type[Method], dataset: Dataset, name: str | None = None
) -> tuple[dict[str, Any], Choice]:
    """The settings of a recipe for what the user gave (sigma, epochs, arch), and the choice itself.

    An architecture may be given by any of its names.
    """
    choice = choose_recipe(method, dataset, given.get("sigma"), name)
    if "epochs" in given:
        choice = dataclasses.replace(choice, recipe=scale(choice.written, method, given["epochs"]))
    recipe = choice.recipe
    arch = given.get("arch") or recipe.settings.get("arch")
    return {**recipe.settings, **recipe.by_arch.get(_canonical(arch), {})}, choice


def _canonical(arch: str | None) -> str:
    known = registry().by_name["architecture"].get(arch or "")
    return known.name if known is not None else arch or ""


def _shown(value: Any) -> str:
    return " and ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def resolve_settings(
    given: TrainSettings, method: type[Method], dataset: Dataset, recipe: str | None = None
) -> tuple[TrainSettings, Choice]:
    """Fill what the user gave from the recipe and the defaults; also say which recipe it was.

    Raises UsageError for settings or options that cannot be.
    """
    mine = given.given()
    values, choice = follow_recipe(mine, method, dataset, recipe)
    options = method_options(method, {**values.get("options", {}), **mine.get("options", {})})
    layered = {
        **values, **mine,
        "method": method.name, "dataset": dataset.name, "options": options.model_dump(mode="json"),
    }  # fmt: skip
    return validated(TrainSettings, layered), choice
