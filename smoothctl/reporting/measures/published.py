"""Tables of the papers, as data with their source, to stand beside a user's runs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from smoothctl.base.errors import UsageError
from smoothctl.reporting.frames import Frame

TABLES = resources.files("smoothctl.reporting.measures") / "published"
"""One file of rows for each paper."""
SIGMA_DIFFERENCE = 1e-9


@dataclass(frozen=True)
class Published:
    """One row of a published table; ``certified`` by radius, as shares; None for what it does not print."""

    paper: str
    table: str
    dataset: str
    method: str
    arch: str
    teacher: str
    sigma: float
    images: str
    certified: dict[float, float] = field(default_factory=dict)
    acr: float | None = None
    hours: float | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """The row in words: method, architecture and teacher."""
        teacher = f" from {self.teacher}" if self.teacher else ""
        return f"{self.method} {self.arch}{teacher}"

    def accuracy(self, radius: float) -> float | None:
        """Certified accuracy at a radius of the table, None at another."""
        return self.certified.get(round(radius, 6))


@cache
def known_papers() -> tuple[str, ...]:
    """The names of the papers whose rows are here."""
    return tuple(sorted(file.name.removesuffix(".csv") for file in TABLES.iterdir() if file.name.endswith(".csv")))


@cache
def load() -> tuple[tuple[Published, ...], dict[str, str]]:
    """All rows, and the source of each paper."""
    rows: list[Published] = []
    sources = {}
    for paper in known_papers():
        text = (TABLES / f"{paper}.csv").read_text(encoding="utf-8")
        comments = [line[1:].strip() for line in text.splitlines() if line.startswith("#")]
        sources[paper] = " ".join(comments)
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        rows += [_row(paper, cells) for cells in csv.DictReader(lines)]
    return tuple(rows), sources


def _row(paper: str, cells: dict[str, str]) -> Published:
    certified = {
        float(name[1:]): float(text) / 100
        for name, text in cells.items()
        if name.startswith("r") and name[1:2].isdigit() and text
    }
    return Published(
        paper, cells["table"], cells["dataset"], cells["method"], cells["arch"], cells["teacher"],
        float(cells["sigma"]), cells["images"], certified,
        float(cells["acr"]) if cells["acr"] else None,
        float(cells["hours"]) if cells["hours"] else None, cells["note"],
    )  # fmt: skip


def check(papers: Sequence[str]) -> None:
    """Raise UsageError for a paper that is not on board."""
    for paper in papers:
        if paper not in (*known_papers(), "all"):
            raise UsageError(f"`against={paper}`: choose {', '.join(known_papers())} or all")


def matching(papers: Sequence[str], frames: Sequence[Frame]) -> list[Published]:
    """Rows with the dataset and sigma of any of these logs; where a log states neither, it matches none.

    Raises UsageError for a paper that is not on board, and if nothing matches.
    """
    check(papers)
    rows = [row for row in load()[0] if "all" in papers or row.paper in papers]
    wanted = {(dataset_of(frame), frame.sigma) for frame in frames}
    found = [
        row
        for row in rows
        if any(
            row.dataset == dataset and sigma is not None and abs(row.sigma - sigma) < SIGMA_DIFFERENCE
            for dataset, sigma in wanted
        )
    ]
    if not found:
        here = "; ".join(
            f"{dataset or 'unknown dataset'} at sigma {sigma}" for dataset, sigma in sorted(wanted, key=str)
        )
        there = ", ".join(sorted({f"{row.dataset} at {row.sigma:g}" for row in rows}))
        raise UsageError(f"`against`: no published row is of {here}; there are rows of {there}")
    return found


def dataset_of(frame: Frame) -> str:
    """The dataset that a log states, or that its path names, of those in the tables."""
    if frame.group[0]:
        return frame.group[0]
    text = str(frame.path).lower()
    return next((dataset for dataset in sorted({row.dataset for row in load()[0]}) if dataset in text), "")
