"""Trackers: asked for by name, told of every epoch, and never the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from smoothctl import Event, Tracker, UsageError
from smoothctl.training.trackers import find_trackers, telling


def test_a_tracker_that_fails_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []

    @contextmanager
    def broken(run: Path) -> Iterator[Callable[[Event], None]]:
        def fail(event: Event) -> None:
            raise RuntimeError("no more room")

        yield fail

    @contextmanager
    def working(run: Path) -> Iterator[Callable[[Event], None]]:
        yield lambda event: told.append(event.kind)
        told.append("closed")

    with telling(tmp_path, [Tracker("broken", broken), Tracker("working", working)]) as tell:
        tell("train.epoch", {"epoch": 0})
        tell("train.epoch", {"epoch": 1})
    assert told == ["train.epoch", "train.epoch", "closed"]
    assert capsys.readouterr().err.count("no more room") == 1


@contextmanager
def unopenable(run: Path) -> Iterator[Callable[[Event], None]]:
    raise RuntimeError("no account")
    yield


@contextmanager
def unclosable(run: Path) -> Iterator[Callable[[Event], None]]:
    yield lambda event: None
    raise RuntimeError("no account")


@pytest.mark.parametrize("tracker", [unopenable, unclosable])
def test_one_that_cannot_be_opened_or_closed_is_named_too(
    tracker: Callable[..., object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with telling(tmp_path, [Tracker("broken", tracker)]) as tell:  # type: ignore[arg-type]
        tell("train.epoch", {"epoch": 0})
    assert capsys.readouterr().err == "warning: tracker broken failed and is not told any more: no account\n"


def test_a_tracker_swallows_no_error_of_training(tmp_path: Path) -> None:
    @contextmanager
    def swallowing(run: Path) -> Iterator[Callable[[Event], None]]:
        with suppress(BaseException):
            yield lambda event: None

    with pytest.raises(KeyboardInterrupt), telling(tmp_path, [Tracker("swallowing", swallowing)]):
        raise KeyboardInterrupt


def test_a_tracker_without_its_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install wandb"):
        find_trackers(["wandb"])


def test_tensorboard_holds_the_numbers_of_each_epoch(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with telling(tmp_path, find_trackers(["tensorboard"])) as tell:
        tell("train.start", {"method": "gaussian"})
        for epoch in (0, 1):
            tell("train.epoch", {"epoch": epoch, "loss": 2.0 - epoch})
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(point.step, point.value) for point in events.Scalars("loss")] == [(0, 2.0), (1, 1.0)]
