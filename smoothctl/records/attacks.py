"""Logs of attacks on certified images: one row an image, one attack for each multiple of its radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smoothctl.base.errors import SmoothctlError
from smoothctl.records.lines import bare_name, read_lines
from smoothctl.records.log import read_sidecar

ATTACK_COLUMNS = (
    "idx", "label", "radius", "norms", "predictions", "forward_passes", "backward_passes", "time", "image", "status",
)  # fmt: skip


@dataclass(frozen=True)
class AttackedImage:
    """An image that was certified for its label within ``radius``: for each multiple, the L2 norm of the perturbation
    and what ``predict`` then returned (-1: it abstained)."""

    idx: int
    label: int
    radius: float
    norms: tuple[float, ...]
    predictions: tuple[int, ...]


@dataclass(frozen=True)
class AttackLog:
    """``images`` are the attacked ones, without those that could not be read (``failed``); ``planned`` were to be
    attacked, of ``eligible`` ones in the certification log. ``passes``: forward and backward, in all."""

    path: Path
    multiples: tuple[float, ...]
    images: tuple[AttackedImage, ...]
    failed: int
    planned: int
    eligible: int
    passes: tuple[int, int]

    @property
    def complete(self) -> bool:
        """Whether every image was attacked that could be."""
        return len(self.images) == self.eligible


def attack_path(certified: Path) -> Path:
    """Where the attacks on the images of a certification log are recorded: beside it."""
    return certified.with_name(f"{bare_name(certified)}.attack.tsv")


def read_attack_log(path: Path) -> AttackLog:
    """Read a log of attacks; raises SmoothctlError for a file that is none."""
    content, there = read_lines(path, ATTACK_COLUMNS), read_sidecar(path)
    columns = {name: content.column(name) or () for name in ATTACK_COLUMNS}
    try:
        multiples = tuple(map(float, there["settings"]["multiples"]))
        planned, eligible = int(there["planned"]), int(there["about"]["eligible"])
        rows = list(zip(*(columns[name] for name in ATTACK_COLUMNS), strict=True))
        images = tuple(_image(row[:5], len(multiples)) for row in rows if row[-1] == "ok")
        passes = sum(map(int, columns["forward_passes"])), sum(map(int, columns["backward_passes"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise SmoothctlError(f"{path} is no log of attacks, or is damaged ({error})") from None
    return AttackLog(path, multiples, images, len(rows) - len(images), planned, eligible, passes)


def _image(cells: Sequence[str], attacks: int) -> AttackedImage:
    idx, label, radius, norms, predictions = cells
    made = AttackedImage(
        int(idx), int(label), float(radius), tuple(map(float, norms.split())), tuple(map(int, predictions.split()))
    )
    if not len(made.norms) == len(made.predictions) == attacks:
        raise ValueError(f"idx {idx} has not {attacks} attacks")
    if not all(math.isfinite(value) and value >= 0 for value in (made.radius, *made.norms)):
        raise ValueError(f"idx {idx} has a norm that is none")
    return made
