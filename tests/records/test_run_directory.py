"""Run directories: what going on reads is data, and never code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from smoothctl.base.errors import SmoothctlError
from smoothctl.cli import run
from smoothctl.records.run_directory import RunDirectory


class RunsCode:
    """What pickle would execute when it is loaded carelessly."""

    def __init__(self, proof: Path):
        self.proof = proof

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.proof),)


@pytest.mark.parametrize("where", ["beside", "instead", "within"])
def test_a_planted_pickle_in_the_state_is_refused(where: str, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    whole = {"network": {}, "optimization": {}, "history": [{"epoch": 0, "seconds": 1.0}]}
    content: Any = {
        "beside": {**whole, "extra": RunsCode(proof)},
        "instead": RunsCode(proof),
        "within": {**whole, "network": {"weight": RunsCode(proof)}},
    }[where]
    directory = RunDirectory(tmp_path)
    torch.save(content, directory.state)
    with pytest.raises(SmoothctlError, match="damaged, so the run cannot go on"):
        directory.load_state()
    assert not proof.exists()


def test_a_state_that_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.state.mkdir()
    with pytest.raises(OSError, match=r"state\.pt"):
        directory.load_state()


def test_a_strangers_run_is_never_run(run_copy: Path, capsys: pytest.CaptureFixture) -> None:
    """The same command goes on with an unfinished run, and so reads its state."""
    proof = run_copy.parent / "proof"
    torch.save(
        {"network": {}, "optimization": {}, "history": [{"epoch": 0, "seconds": 1.0}], "extra": RunsCode(proof)},
        run_copy / "state.pt",
    )
    settings = json.loads((run_copy / "settings.json").read_text())
    (run_copy / "settings.json").write_text(json.dumps({**settings, "finished": None}))
    command = ["train", "--arch", "lenet", "--sigma", "0.25", "--epochs", "2", "--out", str(run_copy)]
    assert run(command) == 1
    assert "damaged, so the run cannot go on" in capsys.readouterr().err
    assert not proof.exists()
