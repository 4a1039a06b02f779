"""The command line itself: words that somebody may type, for every command."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import random
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from tests.fuzz import made
from tests.fuzz.hunting import Reader

GOOD = {
    "train": ["--arch", "lenet", "--epochs", "2", "--dry-run"],
    "transfer": ["--teacher", "good-run", "--student", "lenet", "--epochs", "2", "--dry-run"],
    "certify": ["good-run", "--n", "200", "--max", "2", "--dry-run"],
    "predict": ["good-run", "--n", "200", "--max", "2", "--dry-run"],
    "attack": ["good-run", "--max", "1", "--n", "50", "--dry-run"],
    "report": ["good-run/certify.tsv", "--radii", "0,0.25"],
    "convert": ["good-run", "new.pt", "--overwrite"],
    "plugins": ["--json"],
}
# What writes or fetches is left out, and so is what starts other programs.
LEFT_OUT = {"--download", "--out", "--track", "--compile", "--backend", "--teacher-backend", "--workers", "--help"}
VALUES = (
    "", "0", "-1", "1", "2", "0.25", "1e5", "1e308", "1e-320", "nan", "inf", "9" * 400, "100k", "0x10", "\u0663", "1,2",
    "0,0.25,0.5", ",", "a", "=", "a=b", "a=1", "lenet", "resnet20", "digits", "cifar10", "gaussian", "cohen", "macer",
    "good-run", "good-run/model.pt", "good-run/certify.tsv", "good-run/settings.json", "good-run/epochs.jsonl",
    "good-run/state.pt", "good-run/checkpoint.pth.tar", "missing", ".", "\x1b[31m", "x" * 300, "1/2", "slurm", "cpu",
    "cuda", "mps", "fp64", "acc@0.5>=60%", "acr>=0.1", "lcb@0>=1%", "n=1000", "sigma=1", "certify", "curve", "latex",
    "markdown", "csv", "json", "test", "train", "none", "center", "0.5,0.5", "timm/resnet10t", "denoised/lenet",
    "x.py:make", "\ud800", "--", "-",
)  # fmt: skip


@functools.cache
def _flags(command: str) -> tuple[str, ...]:
    import typer

    from smoothctl.cli import make_app

    parsed: Any = typer.main.get_command(make_app((command,)))
    own = parsed.commands[command] if hasattr(parsed, "commands") else parsed
    named = [name for parameter in own.params for name in parameter.opts if name.startswith("--")]
    return tuple(name for name in named if name not in LEFT_OUT)


def line(rng: random.Random, content: bytes) -> bytes:
    """A good line with other words: flags with and without values, words that vanish, come twice, or change."""
    command = rng.choice(list(GOOD))
    words = list(GOOD[command])
    for _ in range(rng.choice((1, 1, 2, 3))):
        place, how = rng.randrange(len(words) + 1), rng.randrange(6)
        if how <= 2:
            words[place:place] = [rng.choice(_flags(command)), rng.choice(VALUES)]
        elif how == 3:
            words.insert(place, rng.choice((*_flags(command), *VALUES)))
        elif how == 4 and place < len(words):
            words[place] = rng.choice(VALUES)
        else:
            del words[place : place + 1]
    if "--dry-run" in GOOD[command] and "--dry-run" not in words:
        words.insert(0, "--dry-run")
    return json.dumps([command, *words]).encode()


def make(folder: Path) -> Path:
    made.good_run(folder.parent)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "line.json").write_text(json.dumps(["plugins"]))
    return folder / "line.json"


def read(path: Path) -> None:
    """Run the words where the good run lies; a bug and a word that no encoding takes are findings."""
    from smoothctl.cli import run

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="replace"), io.StringIO()
    words = json.loads(path.read_bytes())
    nothing = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with (
        contextlib.chdir(path.parents[1]), mock.patch.object(sys, "stdin", nothing),
        contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
    ):  # fmt: skip
        code = run(words)
    assert code in (0, 1, 2, 3), f"exit code {code} of {words}"
    assert "this is a bug" not in err.getvalue(), f"{words}: {err.getvalue()[-300:]}"


READERS = (Reader("command line", make, (line,), read, share=0.3),)
