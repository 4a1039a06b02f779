"""Good files, as smoothctl and others write them."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path

Make = Callable[[Path], Path]


def quiet_run(*words: str, expected: int = 0) -> None:
    """A command whose output nobody reads, and which has to end as expected."""
    from smoothctl.cli import run

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        code = run(list(words))
    assert code == expected, said.getvalue()


def good_run(place: Path) -> Path:
    """A run directory with its logs, made once, and with what an interrupted run leaves."""
    good = place / "good-run"
    if good.exists():
        return good
    quiet_run("train", "--arch", "lenet", "--epochs", "4", "--lr", "0.01", "--sigma", "0.25", "--out", str(good))
    quiet_run("certify", str(good), "--n", "200", "--max", "20")
    quiet_run("attack", str(good), "--multiples", "0.5,4", "--steps", "1", "--samples", "2", "--n", "50", "--max", "3")
    quiet_run("convert", str(good), str(good / "packed.safetensors"))
    quiet_run("convert", str(good), str(good), str(good / "ensemble.pt"))
    for shard in ("1/2", "2/2"):
        quiet_run("certify", str(good), "--n", "200", "--max", "4", "--shard", shard, "--out", str(good / "parts.tsv"))
    import torch

    weights = torch.load(good / "model.pt", weights_only=True)["state_dict"]
    history = [{"epoch": 1, "seconds": 0.5}]
    torch.save({"network": weights, "optimization": {"rate": 0.1}, "history": history}, good / "state.pt")
    torch.save(
        {"epoch": 9, "arch": "lenet", "state_dict": {f"module.{key}": value for key, value in weights.items()}},
        good / "checkpoint.pth.tar",
    )
    return good


def half_run(folder: Path) -> Path:
    """The state of a run that was interrupted after its first epoch of two, with all that lies beside it."""
    good = folder.parent / "half-run"
    if not good.exists():
        from smoothctl.records.run_directory import RunDirectory

        write_history = RunDirectory.write_history
        RunDirectory.write_history = _interrupt  # type: ignore[method-assign]
        try:
            quiet_run(*half_command(good), expected=130)
        finally:
            RunDirectory.write_history = write_history  # type: ignore[method-assign]
    shutil.copytree(good, folder, dirs_exist_ok=True)
    return folder / "state.pt"


def half_command(run: Path) -> list[str]:
    """The command of the run that was interrupted."""
    return ["train", "--arch", "lenet", "--epochs", "2", "--limit", "60", "--sigma", "0.25", "--out", str(run)]


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def of_run(name: str) -> Make:
    """A file of a run directory, with all the others beside it."""

    def make(folder: Path) -> Path:
        shutil.copytree(good_run(folder.parent), folder, dirs_exist_ok=True)
        return folder / name

    return make


def file(name: str, content: bytes) -> Make:
    """A file by itself."""

    def make(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        return folder / name

    return make
