"""Finding logs, naming them, and saying what must not be compared silently."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from smoothctl.errors import SmoothctlError, UsageError
from smoothctl.records import Log, read_log
from smoothctl.report.metrics import subset

COMPARABLE = ("dataset", "split", "data", "rule", "n0", "n", "alpha", "noise", "norm", "precision")


def default_log(model: Path, what: str) -> Path:
    """Where ``certify`` and ``predict`` write unless told otherwise: in the run, or beside the model file."""
    return model / f"{what}.tsv" if model.is_dir() else model.with_name(f"{model.stem}.{what}.tsv")


def find_logs(paths: Sequence[Path]) -> list[Path]:
    """The logs that files, run directories and folders of runs stand for, in order and once each.

    Raises UsageError for a path that has none.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.suffix in (".pt", ".safetensors"):
            logs = [log for what in ("certify", "predict") if (log := default_log(path, what)).exists()]
        elif path.is_dir():
            logs = sorted(path.glob("**/*.tsv"))
        elif path.exists():
            logs = [path]
        else:
            raise UsageError(f"there is no log or run at {path}")
        if not logs:
            raise UsageError(f"{path} has no log yet; make one with: smoothctl certify {path}")
        found.update(dict.fromkeys(logs))
    return list(found)


def read_logs(paths: Sequence[Path]) -> tuple[list[Log], list[str]]:
    """Read what can be read; the other half is what could not be, a line each."""
    logs, problems = [], []
    for path in paths:
        try:
            logs.append(read_log(path))
        except SmoothctlError as error:
            problems.append(str(error))
    return logs, problems


def names(logs: Sequence[Log]) -> list[str]:
    """Short names that tell the logs apart: the run's directory for the usual file in it, else the path."""
    usual = [log.path.parent if log.path.stem == log.kind and log.settings else log.path for log in logs]
    base = Path(os.path.commonpath([path.parent for path in usual])) if usual else Path()
    short = [path.relative_to(base).as_posix() for path in usual]
    return [f"{name} ({log.kind})" if short.count(name) > 1 else name for name, log in zip(short, logs, strict=True)]


def common_images(logs: Sequence[Log]) -> list[Log]:
    """Restrict logs to the images that all of them hold; raises UsageError if there are none."""
    shared = set.intersection(*({row.idx for row in log.rows} for log in logs))
    if not shared:
        raise UsageError("the logs have no image in common")
    return [replace(log, rows=tuple(row for row in log.rows if row.idx in shared), planned=None) for log in logs]


def cautions(logs: Sequence[Log]) -> list[str]:
    """What a reader must know before comparing these logs: other images, labels or settings, cut runs."""
    found = [f"{log.path}: {notice}" for log in logs for notice in log.notices]
    found += [f"{log.path}: INCOMPLETE {len(log.rows)}/{log.planned} images" for log in logs if log.incomplete]
    for log in logs:
        if failed := sum(row.failed for row in log.rows):
            found.append(f"{log.path}: {failed} images failed and count as not certified")
    for kind in ("certify", "predict"):
        found += _comparison_cautions([log for log in logs if log.kind == kind])
    return found


def _comparison_cautions(logs: Sequence[Log]) -> list[str]:
    found = []
    if len({tuple(row.idx for row in log.rows) for log in logs}) > 1:
        subsets = "; ".join(f"{log.path.name}: {len(log.rows)} images, {subset(log.rows)}" for log in logs)
        found.append(f"the logs hold different images ({subsets}); --common-idx compares the shared ones only")
    found += _label_conflicts(logs)
    for key in COMPARABLE:
        values = {str(log.settings[key]) for log in logs if log.settings and key in log.settings}
        if len(values) > 1:
            found.append(f"the logs differ in {key}: {', '.join(sorted(values))}")
    return found


def _label_conflicts(logs: Sequence[Log]) -> list[str]:
    labels: dict[int, tuple[int, Log]] = {}
    for log in logs:
        for row in log.rows:
            label, first = labels.setdefault(row.idx, (row.label, log))
            if label != row.label and not row.failed:
                return [
                    f"idx {row.idx} has label {label} in {first.path} and {row.label} in {log.path}: "
                    "the logs are not of the same images"
                ]
    return []
