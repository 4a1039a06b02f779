"""Who is told of a training run: plugins that observe, and the trackers that were asked for."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from smoothctl import console
from smoothctl.api import Event, Tracker
from smoothctl.errors import UsageError
from smoothctl.plugins import registry

Tell = Callable[[str, dict[str, Any]], None]


def find_trackers(names: Sequence[str]) -> list[Tracker]:
    """The trackers of these names; raises UsageError for one that is unknown, or whose package is missing."""
    found: list[Tracker] = [registry().find("tracker", name).value for name in names]
    for tracker in found:
        if tracker.package and importlib.util.find_spec(tracker.package) is None:
            raise UsageError(f"--track {tracker.name} needs {tracker.package}: pip install {tracker.package}")
    return found


@contextmanager
def telling(run: Path, trackers: Sequence[Tracker] = ()) -> Iterator[Tell]:
    """Yield ``tell(kind, data)``, which reaches every observer and tracker of a run.

    A tracker that fails is named once and not told again: training goes on.
    """
    with ExitStack() as stack:
        listeners = {tracker.name: stack.enter_context(tracker.open(run)) for tracker in trackers}

        def tell(kind: str, data: dict[str, Any]) -> None:
            event = Event(kind, run, data)
            registry().notify(event)
            for name, listener in list(listeners.items()):
                try:
                    listener(event)
                except Exception as error:
                    del listeners[name]
                    console.warn(f"tracker {name} failed and is not told any more: {' '.join(str(error).split())}")

        yield tell
