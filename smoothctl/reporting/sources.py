"""Finding logs, naming them, and saying what must not be compared silently."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.base.files import file_sha256
from smoothctl.hooks.registry import registry
from smoothctl.records.columns import REQUIRED
from smoothctl.records.lines import bare_name, is_log
from smoothctl.records.log import default_log
from smoothctl.records.run_directory import EPOCHS_FILE, RunDirectory
from smoothctl.records.shards import is_merged
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import comparison, detection
from smoothctl.reporting.measures.metrics import subset
from smoothctl.reporting.reader import read_frame

COMPARABLE = (
    *("dataset", "split", "data", "transform", "rule", "bound", "skip_misclassified", "n0", "n", "alpha"),
    *("noise", "norm", "precision", "sigma"),
)
"""Settings that logs have to share, beside the options of stopping rules."""
INFERRED = ("sigma", "n", "alpha")
SHOWN = 6
# Files that lie in their thousands in folders of data and models, and are not opened to look for a log.
OTHER_FILES = frozenset(
    f".{ending}"
    for ending in [
        "pt",
        "pth",
        "ckpt",
        "tar",
        "bin",
        "safetensors",
        "onnx",
        "npz",
        "npy",
        "h5",
        "pkl",
        "parquet",
        "arrow",
        "zip",
        "png",
        "jpg",
        "jpeg",
        "bmp",
        "gif",
        "webp",
        "pdf",
        "svg",
        "html",
        "json",
        "jsonl",
        "py",
        "pyc",
        "md",
        "yaml",
        "yml",
        "toml",
    ]
)


def find_logs(paths: Sequence[Path]) -> list[Path]:
    """The logs that files, run directories and folders of runs stand for, in order and once each.

    Raises UsageError for a path that has neither a log nor a training run.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.suffix in (".pt", ".safetensors"):
            logs = [log for what in ("certify", "predict") if (log := default_log(path, what)).exists()]
        elif path.is_dir():
            logs = [log for log in _files_below(path) if is_log(log, REQUIRED) and not is_merged(log)]
        elif path.exists():
            logs = [path]
        else:
            raise UsageError(f"there is no log or run at {path}; smoothctl certify makes logs of runs and checkpoints")
        if not logs and not find_runs([path]):
            raise UsageError(f"{path} has no log yet; make one with: smoothctl certify {path}")
        found.update(dict.fromkeys(logs))
    return list(found)


def _files_below(folder: Path) -> Iterator[Path]:
    """The files in a folder that may be logs, whatever their names; hidden ones apart."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and Path(name).suffix.lower() not in OTHER_FILES:
                yield Path(place, name)


def find_runs(paths: Sequence[Path]) -> list[RunDirectory]:
    """The training runs in folders, and around logs and model files, in order and once each."""
    found: dict[Path, RunDirectory] = {}
    for path in paths:
        histories = sorted(path.glob(f"**/{EPOCHS_FILE}")) if path.is_dir() else [path.parent / EPOCHS_FILE]
        for run in map(RunDirectory, (history.parent for history in histories)):
            if run.exists:
                found.setdefault(run.path.resolve(), run)
    return list(found.values())


def read_logs(paths: Sequence[Path]) -> tuple[list[Frame], list[str]]:
    """Read what can be read; the other half is what could not be, a line each."""
    frames, problems = [], []
    for path in paths:
        try:
            frames.append(read_frame(path))
        except SmoothctlError as error:
            problems.append(str(error))
    return named(frames), problems


def named(frames: Sequence[Frame]) -> list[Frame]:
    """Give short names that tell logs apart: the run's directory for the usual file in it, else the path."""
    usual = [frame.path.parent if frame.path.stem == frame.kind and frame.settings else frame.path for frame in frames]
    base = Path(os.path.commonpath([path.parent for path in usual])) if usual else Path()
    whole = [path.relative_to(base).as_posix() for path in usual]
    bare = [
        path.relative_to(base).with_name(bare_name(path)).as_posix() if path == frame.path else long
        for path, frame, long in zip(usual, frames, whole, strict=True)
    ]
    short = [long if bare.count(name) > 1 else name for name, long in zip(bare, whole, strict=True)]
    return [
        replace(frame, name=f"{name} ({frame.kind})" if short.count(name) > 1 and frame.kind == "predict" else name)
        for name, frame in zip(short, frames, strict=True)
    ]


def detected(frames: Sequence[Frame]) -> tuple[list[Frame], list[str]]:
    """Infer n and alpha of logs that do not state them; the other half says what was found."""
    found, said = [], []
    for frame in frames:
        if detection.needs_detection(frame):
            frame, text = detection.detect(frame)
            said.append(f"{frame.name}: no settings file; {text}")
        found.append(frame)
    return found, said


def common_images(frames: Sequence[Frame]) -> list[Frame]:
    """Restrict logs to the images that all of them hold; raises UsageError if there are none."""
    return comparison.shared_images(frames)


def history(frame: Frame) -> list[dict[str, Any]]:
    """The epochs of the training run that a log lies in; empty if it lies in none."""
    run = RunDirectory(frame.path.parent)
    try:
        return run.read_history() if run.epochs.is_file() else []
    except SmoothctlError:
        return []


def training(frame: Frame) -> dict[str, Any]:
    """The settings file of the training run that a log lies in; empty if it lies in none."""
    try:
        return RunDirectory(frame.path.parent).read_settings() or {}
    except SmoothctlError:
        return {}


def without_log(runs: Sequence[RunDirectory], frames: Sequence[Frame]) -> list[Path]:
    """The runs of whose models there is no certification log here, in them or elsewhere."""
    certified = [frame for frame in frames if frame.kind == "certify"]
    folders = {frame.path.parent.resolve() for frame in certified}
    hashes = {frame.settings.get("model") for frame in certified}
    return [
        run.path
        for run in runs
        if run.path.resolve() not in folders and not (run.model.is_file() and file_sha256(run.model) in hashes)
    ]


def comparable() -> tuple[str, ...]:
    """What logs have to share to be compared; logs of other grids of radii share those that are in both."""
    rules = [entry.value for entry in registry("rule").all("rule")]
    options = [name for rule in rules for name in rule.Options.declared() if name != rule.tells.grid]
    return (*COMPARABLE, *options)


def alike(frame: Frame) -> Hashable | None:
    """What logs have to share for the best of them to mean anything; None where a setting is not known."""
    if any(frame.settings.get(key) is None for key in INFERRED):
        return None
    return (frame.idx.tobytes(), *(repr(frame.settings.get(key)) for key in comparable()))


def cautions(frames: Sequence[Frame]) -> list[str]:
    """What a reader must know before comparing these logs: other images, labels or settings, cut runs."""
    found = [f"{frame.path}: {notice}" for frame in frames for notice in frame.notices]
    found += [_unfinished(frame) for frame in frames if frame.incomplete]
    for frame in frames:
        if failed := int(frame.failed.sum()):
            found.append(f"{frame.path}: {failed} images failed and count as not certified")
    for kind in ("certify", "predict"):
        found += _comparison_cautions([frame for frame in frames if frame.kind == kind])
    return found


def _unfinished(frame: Frame) -> str:
    """That a log lacks images: cut short, or stopped since its requirement was decided."""
    if why := frame.about.get("stopped"):
        return f"{frame.path}: stopped early, {why}; its figures are of these images, taken in random order"
    return f"{frame.path}: INCOMPLETE {len(frame)}/{frame.planned} images"


def _comparison_cautions(frames: Sequence[Frame]) -> list[str]:
    found = []
    if len({frame.idx.tobytes() for frame in frames}) > 1:
        subsets = [f"{frame.name}: {len(frame)} images, {subset(frame.idx)}" for frame in frames[:SHOWN]]
        more = f"; and {len(frames) - SHOWN} more" if len(frames) > SHOWN else ""
        found.append(
            f"the logs hold different images ({'; '.join(subsets)}{more}); `common_idx` compares the shared ones only"
        )
    found += _label_conflicts(frames)
    for key in comparable():
        values = {_shown(frame, key) for frame in frames if frame.settings.get(key) is not None}
        if len({value.removeprefix("~") for value in values}) > 1:
            found.append(f"the logs differ in {key}: {', '.join(sorted(values))}")
    for key in INFERRED if len(frames) > 1 and frames[0].kind == "certify" else ():
        unknown = [frame.name for frame in frames if frame.settings.get(key) is None]
        if unknown:
            listed = ", ".join(unknown[:SHOWN]) + (f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else "")
            found.append(f"{key} is not known of {listed}: whether it is the same as of the others cannot be told")
    return [*found, *_several_seeds(frames)]


def _shown(frame: Frame, key: str) -> str:
    """A setting in words, marked with ``~`` where it was inferred."""
    return f"{'~' if key in frame.guessed else ''}{frame.settings[key]}"


def _several_seeds(frames: Sequence[Frame]) -> list[str]:
    """Logs of the same model and images with other seeds, of which the best must not be chosen."""
    seen: dict[tuple[str, bytes], Frame] = {}
    found = []
    for frame in frames:
        if frame.settings.get("model") is None:
            continue
        other = seen.setdefault((str(frame.settings["model"]), frame.idx.tobytes()), frame)
        if other.settings.get("seed") != frame.settings.get("seed"):
            found.append(
                f"{other.name} and {frame.name} certify the same images of the same model with other seeds: each look "
                "spends alpha again, so do not choose the better one"
            )
    return found


def _label_conflicts(frames: Sequence[Frame]) -> list[str]:
    """The first image that two logs give different labels."""
    if len(frames) < 2:
        return []
    places = np.unique(np.concatenate([frame.idx for frame in frames]))
    first, owner = np.full(len(places), -1, np.int64), np.full(len(places), -1, np.int64)
    for place, frame in enumerate(frames):
        idx, label = np.searchsorted(places, frame.idx[~frame.failed]), frame.label[~frame.failed]
        clash = (owner[idx] >= 0) & (first[idx] != label)
        if clash.any():
            at = int(np.flatnonzero(clash)[0])
            other = frames[owner[idx[at]]]
            return [
                f"idx {places[idx[at]]} has label {first[idx[at]]} in {other.path} and {label[at]} in {frame.path}: "
                "the logs are not of the same images"
            ]
        new = owner[idx] < 0
        first[idx[new]], owner[idx[new]] = label[new], place
    return []
