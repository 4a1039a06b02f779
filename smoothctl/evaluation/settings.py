"""Where a log of decided images goes, and which part of a job this process does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from smoothctl.base.settings import Option, Settings

OUTPUT = "Output"


class LogOptions(Settings):
    """The log to write."""

    out: Annotated[
        Path | None,
        Option("The log.", metavar="FILE.tsv", default="in the run, or beside the model file", panel=OUTPUT),
    ] = None
    overwrite: Annotated[bool, Option("Start anew, replacing what is there.", panel=OUTPUT)] = False


class Requirements(Settings):
    """What the images are to decide."""

    require: Annotated[
        tuple[str, ...],
        Option(
            "Certify in a random order, only until it is certain whether all planned images meet this; exit with 3 if "
            "not: acc@R or lcb@R, as in 'acc@0.5>=60%'. Repeatable.",
            metavar="TEST", repeated=True,
        ),
    ] = ()  # fmt: skip


class Sharding(Settings):
    """Shards of a job that several processes do by themselves."""

    shard: Annotated[
        str | None,
        Option(
            "Do the I-th of K shards (or slurm: the shard of this task of a Slurm array), into a log of its own.",
            metavar="I/K", panel="Running",
        ),
    ] = None  # fmt: skip
    merge: Annotated[
        bool, Option("Join the logs of all shards into one, without computing anything.", panel="Running")
    ] = False
