"""A run directory: the model, the settings, a line per epoch, and the state for going on."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smoothctl.base import files
from smoothctl.base.archives import check_archive
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.records.schema import Epoch, RunFile, checked

FORMAT = 1
MODEL_FILE = "model.pt"
EPOCHS_FILE = "epochs.jsonl"
KEPT_FILE = "model-epoch{}.pt"
"""What ``--keep-every`` leaves of an epoch, counted from 1."""


class RunDirectory:
    """The files of one training run below ``path``."""

    def __init__(self, path: Path):
        self.path = path
        self.model = path / MODEL_FILE
        self.settings = path / "settings.json"
        self.epochs = path / EPOCHS_FILE
        self.state = path / "state.pt"

    def begin(self, settings: Mapping[str, Any], about: Mapping[str, Any], overwrite: bool) -> bool:
        """Make ready to train with these settings; return whether the run had finished already.

        Raises UsageError, naming the differences, if a run with other settings lies here, or if the
        directory holds something that is no run.
        """
        there = self.read_settings()
        if there is None:
            self._require_empty()
        elif overwrite:
            self._clear()
        elif not (self.state.exists() or self.model.exists() or there["finished"]):
            pass  # it ended before its first epoch did, so that nothing is lost
        else:
            files.require_same(there["settings"], settings, self.path)
            finished = there["finished"] is not None
            if finished and not (self.model.exists() and self.epochs.exists()):
                raise UsageError(f"{self.path} had finished, but its model is gone; `overwrite` trains it anew")
            if not finished and not self.state.exists():
                raise UsageError(f"{self.path} has a model but no state.pt to go on from; `overwrite` trains it anew")
            if finished:
                self.state.unlink(missing_ok=True)  # left by a kill after the run was marked as finished
            return finished
        self._write_settings(settings, about, finished=None)
        return False

    @property
    def exists(self) -> bool:
        """Whether a run lies here."""
        return self.settings.is_file() and self.epochs.is_file()

    def read_settings(self) -> dict[str, Any] | None:
        """The settings file of the run that lies here, or None if none does."""
        if not self.settings.exists():
            return None
        there: Any = files.read_json(self.settings)
        if not isinstance(there, dict) or not {"format", "settings", "about", "finished"} <= set(there):
            raise UsageError(f"{self.settings} is not of a run of smoothctl; choose another `out`")
        checked(RunFile, there, str(self.settings))
        return there

    def _require_empty(self) -> None:
        others = [entry.name for entry in self.path.iterdir() if not entry.name.startswith(".")]
        if others:
            raise UsageError(f"{self.path} is not a run of smoothctl (it holds {others[0]}); choose another `out`")

    def finish(self) -> None:
        """Mark the run as finished and drop the state for going on."""
        there = files.read_json(self.settings)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._write_settings(there["settings"], there["about"], finished=now)
        self.state.unlink(missing_ok=True)

    def _write_settings(self, settings: Mapping[str, Any], about: Mapping[str, Any], finished: str | None) -> None:
        content = {"format": FORMAT, "settings": settings, "about": about, "finished": finished}
        files.write_json(self.settings, content)

    def _clear(self) -> None:
        """Remove the run and the logs of its model; other files stay."""
        logs = [log for log in self.path.glob("*.tsv") if log.with_suffix(".json").exists()]
        kept = self.path.glob(KEPT_FILE.format("*"))
        mine = [
            self.settings,
            self.model,
            self.epochs,
            self.state,
            *kept,
            *logs,
            *(log.with_suffix(".json") for log in logs),
        ]
        for file in mine:
            file.unlink(missing_ok=True)

    def write_history(self, history: list[dict[str, Any]]) -> None:
        """Write one JSON line per epoch."""
        text = "".join(json.dumps(line) + "\n" for line in history)
        files.replace_file(self.epochs, lambda temporary: temporary.write_text(text, encoding="utf-8"))

    def read_history(self) -> list[dict[str, Any]]:
        """The lines of the epochs so far; raises SmoothctlError if there are none, or they cannot be read."""
        try:
            lines = [json.loads(line) for line in self.epochs.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError, RecursionError) as error:
            raise SmoothctlError(f"{self.epochs} cannot be read ({error})") from None
        if not lines:
            raise SmoothctlError(f"{self.epochs} is damaged: it holds no lines of epochs; `overwrite` trains anew")
        for number, line in enumerate(lines, start=1):
            checked(Epoch, line, f"{self.epochs}, line {number},")
        return lines

    def save_state(self, state: Mapping[str, Any]) -> None:
        """Keep what going on needs."""
        import torch

        files.replace_file(self.state, lambda temporary: torch.save(dict(state), temporary))

    def load_state(self) -> dict[str, Any] | None:
        """What an interrupted run kept, on the CPU, or None."""
        if not self.state.exists():
            return None
        import torch

        self.state.open("rb").close()  # what cannot be opened is not damaged
        try:
            check_archive(self.state)
            state: dict[str, Any] = torch.load(self.state, map_location="cpu", weights_only=True)
            _ = state["network"], state["optimization"]
            for number, line in enumerate(_epochs(state["history"]), start=1):
                checked(Epoch, line, f"{self.state}, epoch {number},")
        except (SmoothctlError, MemoryError):
            raise
        except Exception:  # whatever a damaged archive makes torch and pickle raise
            raise SmoothctlError(f"{self.state} is damaged, so the run cannot go on; `overwrite` starts anew") from None
        return state


def _epochs(history: object) -> list[object]:
    """The lines of a state; raises TypeError where it holds none."""
    if not isinstance(history, list) or not history:
        raise TypeError("no epochs")
    return history
