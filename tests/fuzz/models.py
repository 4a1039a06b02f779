"""Model files: ours in both formats, composed ones, and those of others."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz import damage, made
from tests.fuzz.hunting import Reader


def read_model(path: Path) -> None:
    from smoothctl.models.checkpoint import load_model

    load_model(path)


def read_checkpoint(path: Path) -> None:
    """Of another program; nothing is said of it that it does not say itself."""
    from smoothctl.hooks.registry import registry
    from smoothctl.models.checkpoint import load_model
    from smoothctl.models.import_checkpoint import Assumptions

    load_model(path, given=Assumptions(dataset=registry().find("dataset", "digits").value))


TORCH = (damage.bytes_of, damage.zipped, damage.checkpoint)

READERS = (
    Reader("model", made.of_run("model.pt"), TORCH, read_model),
    Reader(
        "model in safetensors", made.of_run("packed.safetensors"), (damage.bytes_of, damage.safetensors), read_model
    ),
    Reader("ensemble", made.of_run("ensemble.pt"), TORCH, read_model, share=0.3),
    Reader("checkpoint of others", made.of_run("checkpoint.pth.tar"), TORCH, read_checkpoint, share=0.3),
)
