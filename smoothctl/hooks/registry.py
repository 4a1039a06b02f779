"""Loads plugins from entry points, isolates their faults, and looks names up.

Built-in plugins come by the same road as those of other packages. A plugin that cannot be used is
set aside with a warning; everything that does not need it goes on.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any

import pluggy
from packaging.requirements import Requirement

from smoothctl.base import console
from smoothctl.base.about import __version__
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.base.names import did_you_mean
from smoothctl.hooks import specs
from smoothctl.hooks.backends import Backend
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.methods import Method
from smoothctl.hooks.networks import Architecture, Importer
from smoothctl.hooks.noises import Noise
from smoothctl.hooks.reports import ReportPlot, ReportTable
from smoothctl.hooks.rules import StoppingRule
from smoothctl.hooks.trackers import Event, Tracker

NO_PLUGINS = "SMOOTHCTL_NO_PLUGINS"
BLOCK_PLUGINS = "SMOOTHCTL_BLOCK_PLUGINS"
STRICT_PLUGINS = "SMOOTHCTL_STRICT_PLUGINS"

KINDS: dict[str, type] = {
    "method": Method,
    "architecture": Architecture,
    "dataset": Dataset,
    "noise": Noise,
    "rule": StoppingRule,
    "backend": Backend,
    "importer": Importer,
    "tracker": Tracker,
    "table": ReportTable,
    "plot": ReportPlot,
}


@dataclass(frozen=True)
class Source:
    """Where something was registered: the entry point and the package that brought it."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.plugin} ({self.distribution} {self.version})"


@dataclass(frozen=True)
class Registered:
    """A method class, architecture, dataset, noise, stopping rule, ..., and where it comes from."""

    kind: str
    value: Any
    source: Source

    @property
    def name(self) -> str:
        return str(self.value.name)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *getattr(self.value, "aliases", ()))

    def provenance(self) -> dict[str, str]:
        """What files record of it."""
        return {"name": self.name, **vars(self.source)}


@dataclass(frozen=True)
class Failure:
    """A plugin, or one thing of a plugin, that was set aside, and why."""

    source: Source
    reason: str

    def __str__(self) -> str:
        return f"plugin {self.source} set aside: {self.reason}"


@dataclass
class Registry:
    """All that usable plugins registered, by kind and by each of its names."""

    by_name: dict[str, dict[str, Registered]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    observers: list[tuple[Source, Callable[..., object]]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def all(self, kind: str) -> list[Registered]:
        """Everything of a kind once, sorted by name."""
        unique = {entry.name: entry for entry in self.by_name[kind].values()}
        return [unique[name] for name in sorted(unique)]

    def find(self, kind: str, name: str) -> Registered:
        """Look up a name, an alias, or a member of a family such as ``timm/resnet18``.

        Capitals, hyphens and underscores do not matter where that leaves one. Raises UsageError with the closest
        names if there is none.
        """
        known = self.by_name[kind]
        family, slash, member = name.partition("/")
        if slash and member and family + "/" in known:
            return known[family + "/"]
        if name in known and not slash:
            return known[name]
        alike = {entry.name: entry for key, entry in known.items() if _folded(key) == _folded(name)}
        if len(alike) == 1 and not slash:
            return next(iter(alike.values()))
        raise UsageError(self._unknown(kind, name))

    def _unknown(self, kind: str, name: str) -> str:
        parts = [f"unknown {kind} {name!r}."]
        if name in self.by_name[kind]:
            parts.append(f"It is a family: write {name}NAME.")
        elif question := did_you_mean(name, self.by_name[kind]):
            parts.append(question)
        parts.append(f"Available: {', '.join(entry.name for entry in self.all(kind))}.")
        parts += [f"({failure})" for failure in self.failures]
        return " ".join(parts)

    def notify(self, event: Event) -> None:
        """Tell every observer; one that fails is named once and not called again."""
        for source, observer in list(self.observers):
            try:
                observer(event=event)
            except Exception as error:
                self.observers = [pair for pair in self.observers if pair[0] != source]
                self.set_aside(source, f"observe failed: {_describe(error)}")

    def set_aside(self, source: Source, reason: str) -> None:
        """Record that something of a plugin is not used; it is said once, whichever registries find it."""
        failure = Failure(source, reason)
        self.failures.append(failure)
        _say(str(failure))

    def add(self, kind: str, value: Any, source: Source) -> None:
        """Register one thing under all its names, unless it does not fit or a name is taken."""
        entry = Registered(kind, value, source)
        if problem := _misfit(kind, value):
            self.set_aside(source, problem)
            return
        for name in entry.names:
            family, slash, member = name.partition("/")
            taken = family + slash if slash and member else name
            if holder := self.by_name[kind].get(name) or self.by_name[kind].get(taken):
                self.set_aside(source, f"the {kind} name {taken!r} is taken by {holder.source}")
                return
        self.by_name[kind].update(dict.fromkeys(entry.names, entry))

    def remove(self, kind: str, entry: Registered) -> None:
        """Forget what was registered."""
        for name in entry.names:
            self.by_name[kind].pop(name, None)


@cache
def _say(warning: str) -> None:
    console.warn(warning)


def forget() -> None:
    """Load plugins anew when they are next asked for, since other ones are installed by now."""
    registry.cache_clear()
    _say.cache_clear()


@cache
def registry(kind: str = "") -> Registry:
    """Load every plugin once; with a ``kind``, of our own only the files that are named for it, such as ``noises.*``.

    Raises SmoothctlError if one was set aside and SMOOTHCTL_STRICT_PLUGINS is set.
    """
    result = Registry()
    taken: dict[str, Source] = {}
    for point, source in _entry_points():
        if _switched_off(source) or (kind and is_built_in(source) and not point.name.startswith(f"{kind}s.")):
            continue
        if reason := _unwanted(point, source, taken):
            result.set_aside(source, reason)
            continue
        taken[point.name] = source
        _load(result, point, source)
    if result.failures and os.environ.get(STRICT_PLUGINS):
        raise SmoothctlError(f"{STRICT_PLUGINS} is set and {result.failures[0]}")
    return result


def _entry_points() -> Iterator[tuple[EntryPoint, Source]]:
    """Our own plugins first, then those of other packages in the order of their names."""
    found = []
    for point in entry_points(group=specs.PROJECT):
        dist = getattr(point, "dist", None)
        name = (dist.metadata["Name"] or f"without a name, in {dist.locate_file('')}") if dist else "unknown"
        found.append((point, Source(point.name, name, (dist.version or "without a version") if dist else "unknown")))
    return iter(sorted(found, key=lambda item: (not is_built_in(item[1]), item[1].distribution, item[1].plugin)))


def is_built_in(source: Source) -> bool:
    """Whether it came with smoothctl itself."""
    return source.distribution == specs.PROJECT


def _switched_off(source: Source) -> bool:
    if os.environ.get(NO_PLUGINS) and not is_built_in(source):
        return True
    blocked = os.environ.get(BLOCK_PLUGINS, "").replace(",", " ").split()
    return source.plugin in blocked


def _unwanted(point: EntryPoint, source: Source, taken: dict[str, Source]) -> str | None:
    if holder := taken.get(point.name):
        return f"the plugin name {point.name!r} is taken by {holder}"
    dist: Distribution | None = getattr(point, "dist", None)
    for line in (dist.requires or []) if dist else []:
        wanted = Requirement(line)
        applies = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if wanted.name == specs.PROJECT and applies and not wanted.specifier.contains(__version__, prereleases=True):
            return f"it wants smoothctl{wanted.specifier}, this is smoothctl {__version__}"
    return None


def _load(result: Registry, point: EntryPoint, source: Source) -> None:
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    try:
        module = point.load()
        _require_interface(module)
        manager.register(module, name=point.name)
        manager.check_pending()
        _require_marks(module)
        registered = [
            (kind, value)
            for kind in KINDS
            for impl in getattr(manager.hook, f"register_{kind}s").get_hookimpls()
            for value in impl.function()
        ]
    except (Exception, SystemExit) as error:
        result.set_aside(source, _describe(error))
        return
    for kind, value in registered:
        result.add(kind, value, source)
    result.observers += [(source, impl.function) for impl in manager.hook.observe.get_hookimpls()]


def _require_interface(module: Any) -> None:
    """Raise SmoothctlError for a module that states another version of the interface than this one."""
    wanted = getattr(module, f"{specs.PROJECT}_interface", specs.INTERFACE)
    if wanted != specs.INTERFACE:
        raise SmoothctlError(f"it is written for version {wanted} of the plugin interface, this is {specs.INTERFACE}")


def _require_marks(module: Any) -> None:
    """Raise SmoothctlError for a function that is called like a hook and is not marked as one, so nobody calls it."""
    for name, function in vars(module).items():
        is_hook = name.startswith("register_") and hasattr(specs, name)
        if callable(function) and is_hook and not hasattr(function, f"{specs.PROJECT}_impl"):
            file = inspect.getsourcefile(module) or module.__name__
            raise SmoothctlError(f"{name} in {file} lacks @smoothctl.hookimpl, so it registers nothing")


def _misfit(kind: str, value: Any) -> str | None:
    """Say why a value cannot be registered under a kind, or None."""
    wanted = KINDS[kind]
    if wanted is Method:
        if not (isinstance(value, type) and issubclass(value, Method)):
            return f"register_methods gave {value!r}, not a subclass of smoothctl.Method"
        if inspect.isabstract(value) or not isinstance(getattr(value, "name", None), str):
            return f"the method {value.__name__} needs a name and a loss(model, batch)"
    elif not isinstance(value, wanted):
        return f"register hook for {kind} gave {value!r}, not a smoothctl.{wanted.__name__}"
    return None


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def provenance(entries: Iterable[Registered]) -> dict[str, dict[str, str]]:
    """What a written file records of the plugins that made it, by kind."""
    return {entry.kind: entry.provenance() for entry in entries}


def _folded(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
