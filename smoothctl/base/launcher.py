"""What a launcher says of this process in the environment: torchrun's variables, and a Slurm array's."""

from __future__ import annotations

import os
from collections.abc import Mapping

from smoothctl.base.errors import UsageError

SLURM_INDEX, SLURM_FIRST, SLURM_STEP, SLURM_COUNT = (
    f"SLURM_ARRAY_TASK_{name}" for name in ("ID", "MIN", "STEP", "COUNT")
)


def world_size(environment: Mapping[str, str] = os.environ) -> int:
    """How many processes were started together; 1 without a launcher. Raises UsageError for what is no number."""
    text = environment.get("WORLD_SIZE", "1")
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"WORLD_SIZE is {text}, which is no number of processes; start them by torchrun, or unset it")
    return int(text)


def local_rank(environment: Mapping[str, str] = os.environ) -> int:
    """The place of this process among those of its machine, from 0. Raises UsageError for what is no number."""
    text = environment.get("LOCAL_RANK", "0")
    if not text.isdecimal():
        raise UsageError(f"LOCAL_RANK is {text}, which is no place of a process; start them by torchrun, or unset it")
    return int(text)


def leads(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is the first of the processes that were started together, or alone."""
    return world_size(environment) == 1 or environment.get("RANK", "0") == "0"


def array_task(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """The place of this task in a Slurm array, from 1, and the number of tasks.

    Raises KeyError or ValueError where the variables are missing or not numbers.
    """
    first, step = int(environment.get(SLURM_FIRST, "0")), int(environment.get(SLURM_STEP, "1"))
    place = (int(environment[SLURM_INDEX]) - first) // max(1, step)
    return place + 1, int(environment[SLURM_COUNT])
