"""Logs for tests: frames made up from votes, and files as people leave them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from smoothctl.reporting.frames import Frame

HEADER = "idx\tlabel\tpredict\tradius\tcorrect\ttime"


def certified_frame(
    votes: list[list[int]],
    labels: list[int],
    *,
    name: str = "run",
    sigma: float = 0.5,
    alpha: float = 0.001,
    idx: list[int] | None = None,
    **settings: Any,
) -> Frame:
    """A certification log as CERTIFY would write it from these votes [m][classes], by scipy's beta quantile."""
    count = np.array(votes)
    n, top = count.sum(axis=1), count.argmax(axis=1)
    k = count[np.arange(len(count)), top]
    p = np.array([stats.beta.ppf(alpha, a, b - a + 1) if a else 0.0 for a, b in zip(k, n, strict=True)])
    predict = np.where(p >= 0.5, top, -1)
    label = np.array(labels)
    return Frame(
        name=name,
        path=Path(f"{name}.tsv"),
        kind="certify",
        idx=np.arange(len(count)) if idx is None else np.array(idx),
        label=label,
        predict=predict,
        radius=np.where(p >= 0.5, sigma * stats.norm.ppf(np.maximum(p, 0.5)), 0.0),
        correct=(predict == label) & (predict >= 0),
        failed=np.zeros(len(count), bool),
        seconds=np.full(len(count), 0.5),
        top=top,
        n=n,
        votes_text=tuple(" ".join(f"{place}:{c}" for place, c in enumerate(row) if c) for row in votes),
        settings={"sigma": sigma, "alpha": alpha, "n": int(n[0]), "n0": 100, "rule": "cohen", "norm": "l2", **settings},
    )


def radius_frame(radius: list[float], predict: list[int], label: list[int], **values: Any) -> Frame:
    """A log that has radii only, as others publish them."""
    count = len(radius)
    settings = values.pop("settings", {})
    chosen, labels = np.array(predict), np.array(label)
    return Frame(
        name=values.get("name", "log"),
        path=values.get("path", Path("log.tsv")),
        kind="certify",
        idx=np.array(values.get("idx", range(count))),
        label=labels,
        predict=chosen,
        radius=np.array(radius, float),
        correct=(chosen >= 0) & (chosen == labels),
        failed=np.zeros(count, bool),
        seconds=np.full(count, np.nan),
        top=np.full(count, -1),
        n=np.full(count, -1),
        settings=settings,
    )


def write_log(path: Path, rows: list[str], header: str = HEADER) -> Path:
    """Write a log of these rows, whose cells are separated by spaces."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *(row.replace(" ", "\t") for row in rows)]) + "\n")
    return path
