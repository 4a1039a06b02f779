"""Commands that are cut short again and again, and must end as if they had not been."""

from __future__ import annotations

import os
import random
import resource
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from smoothctl.records.log import read_log

SMALLEST, LARGEST = 100, 400_000
"""Bytes that one file may have on a disk that is full."""
OK, USAGE, FAILED = 0, 2, 1
ENDS = {OK, USAGE, FAILED, 130, 143, -signal.SIGKILL, -signal.SIGINT, -signal.SIGTERM}
"""How a command that is cut short may end: well, by a line, or by its signal."""


@dataclass(frozen=True)
class Task:
    """A command that leaves something, and what of that must be the same however often it was cut short."""

    name: str
    line: str
    seconds: float
    result: Callable[[Path], object]


def rows(log: str) -> Callable[[Path], object]:
    """The rows of a log without their times, and its settings."""

    def read(folder: Path) -> object:
        found = read_log(folder / log)
        assert not found.incomplete
        lines = (folder / log).read_text().splitlines()
        clock = lines[0].split("\t").index("time")
        return [line.split("\t")[:clock] + line.split("\t")[clock + 1 :] for line in lines], found.settings

    return read


def weights(*runs: str) -> Callable[[Path], object]:
    """The weights of runs, as bytes."""

    def read(folder: Path) -> object:
        states = [torch.load(folder / run / "model.pt", weights_only=True)["state_dict"] for run in runs]
        return [{key: value.numpy().tobytes() for key, value in state.items()} for state in states]

    return read


def tasks(model: Path) -> list[Task]:
    """What people leave running: a certification, a training, a chain of students."""
    small = "--limit 300 --batch-size 50"
    return [
        Task("certify", f"certify {model} --n 3000 --every 12 --out log.tsv", 4.0, rows("log.tsv")),
        Task("train", f"train --arch lenet --epochs 6 {small} --ema 0.9 --out run", 5.0, weights("run")),
        Task(
            "chain", f"transfer --teacher {model} --chain lenet,lenet5 --epochs 3 {small} --out chain", 8.0,
            weights("chain/1-lenet", "chain/2-lenet5"),
        ),
    ]  # fmt: skip


def start(line: str, folder: Path, most_bytes: int | None = None) -> subprocess.Popen[str]:
    """Start ``smoothctl`` in a folder, where no file can have more than so many bytes."""

    def limit() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.Popen(
        [sys.executable, "-m", "smoothctl", *shlex.split(line)], cwd=folder, text=True, preexec_fn=limit,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], what: str) -> int:
    """Wait for a command; raise AssertionError for a traceback, a bug, or an end of another kind."""
    _, err = process.communicate(timeout=300)
    assert "Traceback" not in err, f"{what}: {err[-2000:]}"
    assert "this is a bug" not in err, f"{what}: {err[-2000:]}"
    assert process.returncode in ENDS, f"{what} ended with {process.returncode}: {err[-2000:]}"
    return process.returncode


def cut_short(task: Task, folder: Path, rng: random.Random) -> tuple[str, bool]:
    """Run a task's command and disturb it; returns how, and whether it came to its end nevertheless."""
    how = rng.choice(("SIGKILL", "SIGKILL", "SIGTERM", "SIGINT", "full disk", "second writer"))
    if how == "full disk":
        process = start(task.line, folder, int(SMALLEST * (LARGEST / SMALLEST) ** rng.random()))
        return how, finish(process, f"{task.name}, {how}") == OK
    process = start(task.line, folder)
    try:
        process.wait(rng.uniform(0.3, 1.6) * task.seconds)
    except subprocess.TimeoutExpired:
        if how == "second writer":
            other = start(task.line, folder)
            assert finish(other, f"{task.name}, {how}") in (OK, USAGE, FAILED)
        else:
            process.send_signal(getattr(signal, how))
    return how, finish(process, f"{task.name}, {how}") == OK


def soak(folder: Path, model: Path, kills: int, seed: int, say: Callable[[str], None] = print) -> Counter[str]:
    """Disturb the tasks, one after the other and anew, so many times; returns how often in which way.

    Raises AssertionError if one leaves something else than it does undisturbed.
    """
    rng, done = random.Random(seed), Counter[str]()
    every = tasks(model)
    expected = {}
    for task in every:
        place = folder / "undisturbed" / task.name
        place.mkdir(parents=True)
        assert finish(start(task.line, place), task.name) == OK
        expected[task.name] = task.result(place)
    number = 0
    while done.total() < kills:
        task, number = every[number % len(every)], number + 1
        place = folder / str(number)
        place.mkdir()
        ended = False
        while not ended and done.total() < kills:
            how, ended = cut_short(task, place, rng)
            done[how] += 1
        if not ended:
            assert finish(start(task.line, place), f"{task.name}, in the end") == OK
        assert task.result(place) == expected[task.name], f"{task.name} in {place} is not as undisturbed"
        say(f"{done.total()} times disturbed: {task.name} in {place.name} is as undisturbed")
    return done
