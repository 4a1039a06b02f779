"""A tracker is told of a run, and neither holds it up nor loses what it was told."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

from smoothctl.hooks import defaults
from smoothctl.hooks.trackers import Event, Tracker

START = {"method": defaults.METHOD, "arch": defaults.ARCHITECTURE, "sigma": 0.25, "epochs": 2}


def check_tracker(tracker: Tracker, folder: Path | None = None) -> None:
    """Tell a tracker of a run of two epochs, twice, as a run that is resumed does; raise AssertionError if it fails.

    ``folder`` is the run's, where what it writes can be looked at afterwards. Its package must be installed.
    """
    name = tracker.name
    assert tracker.summary, f"{name}: say in summary where runs can be followed"
    installed = not tracker.package or importlib.util.find_spec(tracker.package) is not None
    assert installed, f"{name}: it needs {tracker.package}, which is not installed"
    with tempfile.TemporaryDirectory() as temporary:
        run = folder or Path(temporary)
        for epoch in (1, 2):
            with tracker.open(run) as follow:
                assert callable(follow), f"{name}: open(run) yields {follow!r}, which cannot be told anything"
                follow(Event("train.start", run, START))
                follow(Event("train.epoch", run, _epoch(epoch)))
                follow(Event("something.new", run, {}))
                follow(Event("train.end", run, _epoch(epoch)))


def _epoch(epoch: int) -> dict[str, float]:
    """What training tells of an epoch."""
    return {
        "epoch": epoch, "lr": 0.1, "loss": 1 / epoch, "heldout_accuracy": 0.5, "chance_accuracy": 0.1,
        "seconds": 1.5, "forward_passes": 100, "backward_passes": 100,
    }  # fmt: skip
