"""The hooks: the one page on which the engine and its plugins meet.

A plugin is a module, named by an entry point in the group ``smoothctl``, with functions marked
``@smoothctl.hookimpl``. It implements the hooks that it needs and leaves out the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from smoothctl.hooks.backends import Backend
    from smoothctl.hooks.datasets import Dataset
    from smoothctl.hooks.methods import Method
    from smoothctl.hooks.networks import Architecture, Importer
    from smoothctl.hooks.noises import Noise
    from smoothctl.hooks.reports import ReportPlot, ReportTable
    from smoothctl.hooks.rules import StoppingRule
    from smoothctl.hooks.trackers import Event, Tracker

PROJECT = "smoothctl"
INTERFACE = 1
"""The version of what plugins and the engine ask of each other; a plugin may state the one that it is written for."""
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_methods() -> Iterable[type[Method]]:  # type: ignore[empty-body]
    """Training objectives. Those with ``needs_teacher = True`` serve ``smoothctl transfer``."""


@hookspec
def register_architectures() -> Iterable[Architecture]:  # type: ignore[empty-body]
    """Networks. A name that ends in ``/`` is a family and is given what follows the slash."""


@hookspec
def register_datasets() -> Iterable[Dataset]:  # type: ignore[empty-body]
    """Labelled images, with their shape, class names, mean and standard deviation."""


@hookspec
def register_noises() -> Iterable[Noise]:  # type: ignore[empty-body]
    """How to draw noise, and which radius a lower bound on p_A proves."""


@hookspec
def register_rules() -> Iterable[StoppingRule]:  # type: ignore[empty-body]
    """Stopping rules of certification: how many noise samples an image gets, and what its votes prove."""


@hookspec
def register_backends() -> Iterable[Backend]:  # type: ignore[empty-body]
    """Ways to evaluate a network."""


@hookspec
def register_importers() -> Iterable[Importer]:  # type: ignore[empty-body]
    """Layouts of other people's checkpoints. They are tried in the order of their names."""


@hookspec
def register_trackers() -> Iterable[Tracker]:  # type: ignore[empty-body]
    """Places where a training run can be followed, by ``--track NAME``."""


@hookspec
def register_tables() -> Iterable[ReportTable]:  # type: ignore[empty-body]
    """Tables of a report, shown by ``--show NAME`` and on the page."""


@hookspec
def register_plots() -> Iterable[ReportPlot]:  # type: ignore[empty-body]
    """Plots of a report, drawn by ``--plot NAME`` and on the page."""


@hookspec
def observe(event: Event) -> None:
    """Progress of training and certification, for whoever wants to know. What is returned is ignored."""
