"""What training cost, and what transfer saved: tables 4 and 5 of the CRT paper for one's own runs."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.stats import t as student_t

from smoothctl.base import console
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.base.files import file_sha256
from smoothctl.records import cost
from smoothctl.records.cost import Cost, Link
from smoothctl.records.log import default_log
from smoothctl.records.run_directory import RunDirectory
from smoothctl.reporting import sources
from smoothctl.reporting.measures import metrics
from smoothctl.reporting.output.cells import ACR, radius
from smoothctl.reporting.output.layout import Cell, Table, figures, words
from smoothctl.reporting.reader import read_frame

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Run:
    """A training run: its cost, the seconds of each epoch (of ``planned``), what came before it, and ACR if it was
    certified: of what, ``certified`` tells."""

    path: Path
    method: str
    arch: str
    dataset: str
    seconds: tuple[float, ...]
    cost: Cost
    teachers: tuple[Link, ...]
    planned: int
    acr: float | None
    certified: str
    model_sha256: str

    @property
    def finished(self) -> bool:
        return len(self.seconds) >= self.planned

    @property
    def generation(self) -> int:
        """0 for a run without a teacher."""
        return cost.generation_after(self.teachers)

    @property
    def epoch_seconds(self) -> float:
        """Mean seconds of an epoch."""
        return statistics.fmean(self.seconds)

    @property
    def margin(self) -> float | None:
        """Half of the 95 % confidence interval of that mean, over the epochs (Student's t)."""
        count = len(self.seconds)
        if count < 2:
            return None
        quantile = float(student_t.ppf((1 + CONFIDENCE) / 2, count - 1))
        return quantile * statistics.stdev(self.seconds) / math.sqrt(count)

    @property
    def lineage_seconds(self) -> float | None:
        """Seconds of this run and all before it; None if one of them is not on record."""
        before = cost.seconds(self.teachers)
        return None if before is None else before + self.cost.seconds


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """The training runs in run directories and folders of them, once each, teachers before their students.

    Raises UsageError for a path without any.
    """
    for path in paths:
        if not sources.find_runs([path]):
            raise UsageError(f"there is no training run at {path}; `cost` takes run directories of smoothctl train")
    return sorted(map(_read, sources.find_runs(paths)), key=lambda run: run.generation)


def _read(run: RunDirectory) -> Run:
    settings = run.read_settings()
    history = run.read_history()
    if settings is None or not history:
        raise SmoothctlError(f"{run.path} has no finished epoch yet")
    own = settings["settings"]
    return Run(
        run.path, own["method"], own["arch"], own["dataset"], tuple(line["seconds"] for line in history),
        cost.total(history), tuple(cost.teachers_of(run) or ()), own["epochs"],
        *_acr(run.path), file_sha256(run.model),
    )  # fmt: skip


def _acr(run: Path) -> tuple[float | None, str]:
    """ACR of a run by its usual log, else by another whole one, and of what it is; None if there is no such log."""
    usual = default_log(run, "certify")
    for log in sorted(run.glob("certify*.tsv"), key=lambda log: (log != usual, log)):
        try:
            frame = read_frame(log)
        except SmoothctlError:
            continue
        acr = metrics.average_certified_radius(frame)
        if acr is not None and not frame.incomplete and "shard" not in frame.about:
            n = frame.settings.get("n")
            return acr, f"{len(frame)} images ({metrics.subset(frame.idx)}) at sigma {frame.sigma:g} with n = {n}"
    return None, ""


def choose_baseline(runs: Sequence[Run], asked: Path | None) -> Run | None:
    """The directly trained run that others are compared with: the one asked for, else the first without teacher.

    Raises UsageError if what is asked for is not one finished run without a teacher.
    """
    if asked is None:
        return next((run for run in runs if not run.teachers and run.finished), None)
    found = find_runs([asked])
    if len(found) > 1:
        raise UsageError(f"`baseline={asked}` holds {len(found)} runs; name one of them")
    if found[0].teachers or not found[0].finished:
        what = "had a teacher" if found[0].teachers else "is not finished"
        raise UsageError(f"`baseline={asked}`: it {what}; name a finished run of smoothctl train")
    return found[0]


def tables(runs: Sequence[Run], baseline: Run | None) -> list[Table]:
    """Cost of each run, and along each lineage of at least one transfer."""
    return [_cost_table(runs, baseline), *_lineage_tables(runs, baseline)]


def _cost_table(runs: Sequence[Run], baseline: Run | None) -> Table:
    columns = (
        words("run"), words("method"), words("arch", 5), figures("generation", 6), figures("epochs", 6),
        figures("s/epoch", 3), figures("forward/epoch", 7), figures("backward/epoch", 7), figures("teacher/epoch", 7),
        figures("total", 2), figures("with lineage"), figures("faster per epoch", 4), figures("faster in all"), ACR,
    )  # fmt: skip
    rows = []
    for run in runs:
        compared = baseline is not None and run.path != baseline.path
        per_epoch = [round(count / run.cost.epochs) for count in (
            run.cost.forward_passes, run.cost.backward_passes, run.cost.teacher_passes)]  # fmt: skip
        rows.append([
            Cell(_name(run)), Cell(run.method), Cell(run.arch), Cell(str(run.generation)), Cell(_epochs(run)),
            _seconds(run), *(Cell(f"{count:,}") for count in per_epoch), _duration(run.cost.seconds),
            _duration(run.lineage_seconds),
            _times(baseline.epoch_seconds, run.epoch_seconds) if compared and baseline else Cell("-"),
            _times(baseline.cost.seconds, run.lineage_seconds) if compared and baseline and run.finished else Cell("-"),
            radius(run.acr),
        ])  # fmt: skip
    against = f"; faster than {_name(baseline)}, which was trained directly" if baseline else ""
    certified = list(dict.fromkeys(run.certified for run in runs if run.certified))
    of_what = f"; ACR of {', and of '.join(certified)}" if certified else ""
    note = f"[seconds of training, held-out checks apart, with the 95 % interval over epochs{against}{of_what}]"
    return Table("Cost of training", columns, rows, note=note, name="cost")


def _lineage_tables(runs: Sequence[Run], baseline: Run | None) -> list[Table]:
    """For each run that nobody here was taught by: what was spent and saved, generation by generation."""
    found = []
    certified = {run.model_sha256: run.acr for run in runs}
    for run in runs:
        if not run.teachers or not run.finished or any(_leads_to(run, other) for other in runs):
            continue
        links = [*run.teachers, Link(run.arch, run.method, run.model_sha256, run.cost, run.generation)]
        spent = list(itertools.accumulate((math.nan if link.cost is None else link.cost.seconds) for link in links))
        rows = []
        for link, seconds in zip(links, spent, strict=True):
            direct = None if baseline is None else (link.generation + 1) * baseline.cost.seconds
            rows.append([
                Cell(str(link.generation)), Cell(link.method), Cell(link.arch),
                _duration(None if link.cost is None else link.cost.seconds),
                _duration(None if math.isnan(seconds) else seconds), _duration(direct),
                Cell("-" if direct is None or math.isnan(seconds) else f"{100 * (1 - seconds / direct):.1f} %"),
                radius(certified.get(link.sha256)),
            ])  # fmt: skip
        named = f": every generation trained as {_name(baseline)} was" if baseline else ""
        columns = (
            figures("generation"), words("method"), words("arch", 2), figures("own", 3), figures("spent so far"),
            figures("trained directly", 1), figures("saved"), ACR,
        )  # fmt: skip
        title = f"Along the lineage of {_name(run)}"
        found.append(Table(title, columns, rows, note=f"[directly{named}]", name="lineage"))
    return found


def _leads_to(run: Run, other: Run) -> bool:
    """Whether a run's model stands in another's lineage."""
    return any(link.sha256 == run.model_sha256 for link in other.teachers)


def as_document(runs: Sequence[Run], baseline: Run | None) -> dict[str, Any]:
    """The same figures, unrounded, as plain data."""
    return {
        "baseline": None if baseline is None else str(baseline.path),
        "runs": [
            {
                "run": str(run.path), "method": run.method, "arch": run.arch, "dataset": run.dataset,
                "generation": run.generation, "finished": run.finished, "seconds_per_epoch": run.epoch_seconds,
                "margin": run.margin, **vars(run.cost), "lineage_seconds": run.lineage_seconds,
                "acr": run.acr, "acr_of": run.certified or None,
                "lineage": [link.as_plain() for link in run.teachers],
            }
            for run in runs
        ],
    }  # fmt: skip


def _name(run: Run) -> str:
    return str(run.path)


def _epochs(run: Run) -> str:
    return str(run.cost.epochs) if run.finished else f"{run.cost.epochs}/{run.planned} INCOMPLETE"


def _seconds(run: Run) -> Cell:
    margin = "" if run.margin is None else f" ± {run.margin:.2g}"
    return Cell(f"{run.epoch_seconds:.4g}{margin}", run.epoch_seconds)


def _duration(seconds: float | None) -> Cell:
    return Cell("-") if seconds is None else Cell(console.duration(seconds), seconds)


def _times(direct: float, own: float | None) -> Cell:
    return Cell("-") if own is None else Cell(f"{direct / own:.2f}x", direct / own)
