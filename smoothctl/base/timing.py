"""Which of several ways to compute something is the fastest here: measured, for no feature of a processor tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

ROUNDS = 3
HOPELESS = 4
"""What begins this many times slower than the first is not tried again: emulated bf16 takes seconds."""
GAIN = 0.95
"""Of the time of the first, what another may take at most to be worth it."""

Name = TypeVar("Name", bound=str)


def least_seconds(tasks: Mapping[Name, Callable[[], object]]) -> dict[Name, float]:
    """Seconds of each task, which waits for its device: the least of rounds in turns, after one that warms up."""
    warm = {name: _seconds(task) for name, task in tasks.items()}
    first = next(iter(warm.values()))
    hopeful = [name for name in tasks if warm[name] <= HOPELESS * first]
    rounds = [{name: _seconds(tasks[name]) for name in hopeful} for _ in range(ROUNDS)]
    return {name: min(times[name] for times in rounds) if name in hopeful else warm[name] for name in tasks}


def _seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def fastest(seconds: Mapping[Name, float]) -> Name:
    """The fastest task; the first one unless another saves a twentieth at least."""
    first, best = next(iter(seconds)), min(seconds, key=lambda name: seconds[name])
    return best if seconds[best] <= GAIN * seconds[first] else first


def describe(seconds: Mapping[Name, float]) -> str:
    """Say what each task takes: ``fp32 21.3 ms, bf16 8.1 ms``."""
    return ", ".join(f"{name} {1000 * each:.1f} ms" for name, each in seconds.items())
