"""Which stopping rule is asked for, and the options of all that are registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import create_model

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import Settings, validated
from smoothctl.hooks.defaults import RULE
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import StoppingRule
from smoothctl.smoothing.settings import CertifySettings


def choose_rule(name: str | None, given: Mapping[str, Any]) -> tuple[StoppingRule, Settings]:
    """The rule of a name, or that whose options are given, or the default; and its options, checked."""
    rules = registry("rule")
    every: list[StoppingRule] = [entry.value for entry in rules.all("rule")]
    owners = {option: rule for rule in every for option in rule.Options.declared() if option in given}
    if len({rule.name for rule in owners.values()}) > 1:
        raise UsageError(f"{' and '.join(owners)} are two stopping rules; choose one")
    owner = next(iter(owners.values()), None)
    rule: StoppingRule = owner if owner and not name else rules.find("rule", name or RULE).value
    for option, owner in owners.items():
        if owner.name != rule.name:
            raise UsageError(f"{option} belongs to the stopping rule {owner.name}, not to {rule.name}")
    needed = [field for field, info in rule.Options.model_fields.items() if info.is_required() and field not in given]
    if needed:
        raise UsageError(f"the stopping rule {rule.name} needs {' and '.join(needed)}")
    return rule, validated(rule.Options, given)


def asking(radii: Sequence[float]) -> dict[str, Any]:
    """The option of the rule that asks which of chosen radii are proved; raises UsageError if there is none."""
    grids = [entry.value.tells.grid for entry in registry("rule").all("rule") if entry.value.tells.grid]
    if not grids:
        raise UsageError("no stopping rule here asks for chosen radii")
    return {grids[0]: radii}


def rule_options() -> type[Settings]:
    """The options of all rules that are registered, as one class, so that they become flags of a command.

    A rule whose option has the name of another's is set aside.
    """
    rules = registry("rule")
    names = set(CertifySettings.model_fields)
    groups: list[type[Settings]] = []
    for entry in rules.all("rule"):
        options = entry.value.Options.declared()
        if taken := sorted(names & set(options)):
            rules.set_aside(entry.source, f"the option {taken[0]} of the rule {entry.name} is taken")
            rules.remove("rule", entry)
            continue
        names |= set(options)
        groups.append(entry.value.Options)
    return _joined(tuple(groups))


@cache
def _joined(groups: tuple[type[Settings], ...]) -> type[Settings]:
    """One class with the options of several, none of which has to be given."""
    fields: dict[str, Any] = {}
    for group in groups:
        hints = get_type_hints(group, include_extras=True)
        fields |= {name: (Annotated[hints[name] | None, option], None) for name, option in group.declared().items()}
    return create_model("RuleOptions", __base__=Settings, **fields)
