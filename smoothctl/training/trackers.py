"""Who is told of a training run: plugins that observe, and the trackers that were asked for."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from smoothctl.base import console
from smoothctl.base.errors import UsageError
from smoothctl.hooks.registry import registry
from smoothctl.hooks.trackers import Event, Tracker

Tell = Callable[[str, dict[str, Any]], None]


def find_trackers(names: Sequence[str]) -> list[Tracker]:
    """The trackers of these names; raises UsageError for one that is unknown, or whose package is missing."""
    found: list[Tracker] = [registry().find("tracker", name).value for name in names]
    for tracker in found:
        if tracker.package and importlib.util.find_spec(tracker.package) is None:
            raise UsageError(f"`track={tracker.name}` needs {tracker.package}: pip install {tracker.package}")
    return found


@contextmanager
def telling(run: Path, trackers: Sequence[Tracker] = ()) -> Iterator[Tell]:
    """Yield ``tell(kind, data)``, which reaches every observer and tracker of a run.

    A tracker that fails, be it when it is opened, told or closed, is named once and not told again: training
    goes on.
    """
    with ExitStack() as stack:
        opened = {tracker.name: _open(tracker, run, stack) for tracker in trackers}
        listeners = {name: listener for name, listener in opened.items() if listener is not None}

        def tell(kind: str, data: dict[str, Any]) -> None:
            event = Event(kind, run, data)
            registry().notify(event)
            for name, listener in list(listeners.items()):
                try:
                    listener(event)
                except Exception as error:
                    del listeners[name]
                    _warn(name, error)

        yield tell


def _open(tracker: Tracker, run: Path, stack: ExitStack) -> Callable[[Event], None] | None:
    """What a tracker wants called, until the stack closes it; None, with a warning, if it cannot be opened."""
    try:
        manager = tracker.open(run)
        listener = manager.__enter__()
    except Exception as error:
        _warn(tracker.name, error)
        return None

    def close(*raised: Any) -> None:
        # What it answers is left aside: a tracker must not swallow the errors of training.
        try:
            manager.__exit__(*raised)
        except Exception as error:
            if error is not raised[1]:
                _warn(tracker.name, error)

    stack.push(close)
    return listener


def _warn(name: str, error: Exception) -> None:
    console.warn(f"tracker {name} failed and is not told any more: {' '.join(str(error).split())}")
