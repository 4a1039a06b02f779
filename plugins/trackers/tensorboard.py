"""TensorBoard: event files in the run directory, for ``tensorboard --logdir runs``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from smoothctl import Event, Tracker, hookimpl


@contextmanager
def follow(run: Path) -> Iterator[Callable[[Event], None]]:
    """Write the numbers of each epoch as scalars; going on with a run adds to them."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(run / "tensorboard")) as writer:

        def write(event: Event) -> None:
            if event.kind == "train.start":
                writer.add_text("settings", "\n".join(f"    {name}: {value}" for name, value in event.data.items()))
            if event.kind == "train.epoch":
                for name, value in event.data.items():
                    if name != "epoch":
                        writer.add_scalar(name, value, event.data["epoch"])
                writer.flush()

        yield write


@hookimpl
def register_trackers() -> list[Tracker]:
    return [Tracker("tensorboard", follow, "tensorboard", summary="TensorBoard event files in the run directory")]
