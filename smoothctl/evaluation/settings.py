"""Where a log of decided images goes, and which part of a job this process does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import Count, Option, Positive, Probability, Radii, Seed, Settings

OUTPUT = "Output"


class LogOptions(Settings):
    """The log to write."""

    out: Annotated[
        Path | None,
        Option("The log.", metavar="FILE.tsv", default="in the run, or beside the model file", panel=OUTPUT),
    ] = None
    overwrite: Annotated[bool, Option("Start anew, replacing what is there.", panel=OUTPUT)] = False


class AttackSettings(Settings):
    """What decides an attack, apart from the model, the images and their certified radii."""

    multiples: Annotated[
        Annotated[Radii, Field(min_length=1)],
        Option("Norms of the attacks, in multiples of each image's certified radius.", metavar="M,M,..."),
    ] = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
    steps: Annotated[Count, Option("Steps of PGD; at least 1.")] = 20
    step_size: Annotated[
        Positive | None, Option("L2 length of a step, in pixels in [0,1].", default="2 * norm / steps")
    ] = None
    samples: Annotated[
        Count, Option("Noise samples behind each gradient (1,000 in the evaluation of Salman et al. 2019).")
    ] = 100
    n: Annotated[Count, Option("Noise samples that decide what the attacked image is; at least 1.")] = 1000
    alpha: Annotated[Probability, Option("Probability that a decision is wrong; between 0 and 1.")] = 0.001
    max: Annotated[Count | None, Option("Attack at most so many images.", panel="Images")] = None
    seed: Annotated[Seed, Option("Seed of all randomness.", panel="Running")] = 0
    certified: Annotated[
        Path | None,
        Option("The certification log with the radii.", metavar="FILE.tsv", default="the model's", panel="Images"),
    ] = None

    def check(self) -> None:
        """Raise UsageError for multiples of zero, and for an n that can never return a class at this alpha."""
        from smoothctl.smoothing.bounds import require_n_to_predict

        if not all(self.multiples):
            raise UsageError("multiples must be above 0")
        require_n_to_predict(self.n, self.alpha, "attack")


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
