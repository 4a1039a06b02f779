"""Logs as columns: what measures compute on.

A frame is one log with one array entry an image. Shapes are [m] for m images, radii and ACR are in
the norm of the noise and in units of pixels in [0,1].
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from smoothctl.base.errors import UsageError
from smoothctl.hooks.defaults import RULE
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import StoppingRule, Tells
from smoothctl.records.log import Log, parse_votes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Frame:
    """One log. ``radius``, ``seconds`` are nan and ``top``, ``n`` are -1 where the log has none.

    ``votes_text`` are the counts per class of the estimation sample, image by image as the log has
    them, ``selection_text`` those of selection and pilot; empty if not kept. ``note`` says what was done
    to the log, such as another alpha; ``guessed`` names the settings that were inferred from the radii not stated;
    a ``projection`` proves nothing.
    """

    name: str
    path: Path
    kind: Literal["certify", "predict"]
    idx: Ints
    label: Ints
    predict: Ints
    radius: Floats
    correct: Bools
    failed: Bools
    seconds: Floats
    top: Ints
    n: Ints
    p_lower: Floats = field(default_factory=lambda: np.empty(0))
    line: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    votes_text: tuple[str, ...] = ()
    selection_text: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    planned: int | None = None
    notices: tuple[str, ...] = ()
    note: str = ""
    guessed: frozenset[str] = frozenset()
    projection: bool = False

    def __len__(self) -> int:
        return len(self.idx)

    @cached_property
    def proved(self) -> Floats:
        """The radius that counts for the label: below zero if none does, since 0 is a radius too."""
        return np.where(self.correct & ~np.isnan(self.radius), self.radius, -1.0)

    @cached_property
    def votes(self) -> tuple[Mapping[int, int], ...]:
        """Counts per class, image by image; empty if the log keeps none."""
        return tuple(parse_votes(text) for text in self.votes_text)

    @property
    def title(self) -> str:
        """The name, with what was done to the log."""
        return f"{self.name} ({self.note})" if self.note else self.name

    @property
    def incomplete(self) -> bool:
        return self.planned is not None and len(self) < self.planned

    @property
    def abstained(self) -> Bools:
        return np.asarray((self.predict == ABSTAIN) & ~self.failed)

    @cached_property
    def tells(self) -> Tells:
        """What its stopping rule's rows tell: as the log says, or else the rule itself; the least if neither does."""
        if self.about.get("tells"):
            return Tells(**self.about["tells"])
        rules = registry("rule")
        name = self.settings.get("rule") or RULE
        try:
            rule: StoppingRule = rules.find("rule", name).value
        except UsageError:
            return Tells(grid="unknown")
        return rule.tells

    @property
    def grid(self) -> tuple[float, ...] | None:
        """The radii that its rows are about; None where each row holds the largest radius that was proved."""
        return tuple(map(float, self.settings.get(self.tells.grid) or ())) if self.tells.grid else None

    @property
    def alpha(self) -> float | None:
        return self.settings.get("alpha")

    @property
    def sigma(self) -> float | None:
        """Scale of the noise: stated, or inferred from a name such as ``noise_0.50`` or ``sigma_0.25``."""
        known = self.settings.get("sigma")
        return None if known is None else float(known)

    @property
    def norm(self) -> str:
        return str(self.settings.get("norm", "l2"))

    @property
    def values(self) -> int | None:
        """How many values an image of the model has: C * H * W; None if the log does not say."""
        return None if self.input_shape is None else math.prod(self.input_shape)

    @property
    def input_shape(self) -> tuple[int, ...] | None:
        """The shape [C,H,W] of an image of the model; None if the log does not say."""
        shape = self.model("input_shape")
        if not isinstance(shape, list) or not all(isinstance(side, int) and side > 0 for side in shape):
            return None
        return tuple(shape)

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.about.get("class_names", ()))

    def model(self, key: str) -> Any:
        """What the log says of its model: arch, method, lineage, ...; None if it says nothing."""
        return self.about.get("model", {}).get(key)

    @property
    def group(self) -> tuple[str, str, str]:
        """Dataset, method and architecture, by which runs belong together; empty texts where unknown."""
        dataset = self.settings.get("dataset") or self.model("dataset") or ""
        return str(dataset), str(self.model("method") or ""), str(self.model("arch") or "")

    def take(self, mask: Bools) -> Frame:
        """The same log with some of its images only."""
        kept: dict[str, Any] = {name: getattr(self, name)[mask] for name in ARRAYS}
        kept |= {name: getattr(self, name)[mask] for name in ("p_lower", "line") if len(getattr(self, name))}
        for name in ("votes_text", "selection_text"):
            kept[name] = tuple(itertools.compress(getattr(self, name), mask))
        return replace(self, **kept, planned=None)


ARRAYS = ("idx", "label", "predict", "radius", "correct", "failed", "seconds", "top", "n")


SIGMA = {word: re.compile(rf"{word}[_=-]?(\d+(?:\.\d+)?)") for word in ("sigma", "noise")}


def sigma_in(path: Path) -> float | None:
    """The scale that a file or folder name states; ``sigma_`` (certification) before ``noise_`` (training)."""
    for pattern in SIGMA.values():
        for part in (path.name, *(parent.name for parent in path.parents)):
            if (found := pattern.search(part)) and float(found.group(1)) > 0:
                return float(found.group(1))
    return None


def from_log(log: Log, name: str = "") -> Frame:
    """A log as a frame; a scale that only its name states counts as inferred."""
    columns, count = log.columns, len(log)
    settings = dict(log.settings or {})
    named = None if settings.get("sigma") is not None else sigma_in(log.path)
    if named is not None:
        settings["sigma"] = named
    absent = np.full(count, np.nan)
    votes, selection = (columns.get(name, ()) for name in ("votes", "selection"))
    return Frame(
        name=name or log.path.name,
        path=log.path,
        kind=log.kind,
        idx=columns["idx"],
        label=columns["label"],
        predict=columns["predict"],
        radius=columns.get("radius", absent),
        correct=log.correct,
        failed=np.array([status != "ok" for status in columns["status"]], np.bool_),
        seconds=columns["time"],
        top=columns["top"],
        n=columns["n"],
        p_lower=columns.get("p_lower", absent),
        line=log.lines,
        votes_text=votes if any(votes) else (),
        selection_text=selection if any(selection) else (),
        settings=settings,
        about=log.about,
        planned=log.planned,
        notices=log.notices,
        guessed=frozenset() if named is None else frozenset({"sigma"}),
    )
