"""What training cost: intervals, speed-up and saving against an independent computation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from smoothctl.cost import Cost, Link
from smoothctl.errors import UsageError
from smoothctl.report import costs


def make_run(path: Path, seconds: list[float], teachers: list[Link] | None = None, method: str = "gaussian") -> Path:
    """A run directory as training leaves it."""
    path.mkdir(parents=True)
    about = {"lineage": [link.as_plain() for link in teachers or []]}
    settings = {"method": method, "arch": "resnet20", "dataset": "cifar10"}
    (path / "settings.json").write_text(json.dumps(
        {"format": 1, "settings": settings, "about": about, "finished": "2026-01-01"}))  # fmt: skip
    passes = {"forward_passes": 100, "backward_passes": 100, "teacher_passes": 50}
    lines = [{"epoch": epoch, "loss": 1.0, "seconds": each, **passes} for epoch, each in enumerate(seconds)]
    (path / "epochs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (path / "model.pt").write_bytes(str(path).encode())
    return path


def test_the_interval_is_students(tmp_path: Path) -> None:
    seconds = [10.0, 12.0, 11.0, 15.0]
    (run,) = costs.find_runs([make_run(tmp_path / "a", seconds)])
    low, high = stats.t.interval(0.95, 3, loc=np.mean(seconds), scale=stats.sem(seconds))
    assert run.margin is not None
    assert (run.epoch_seconds - run.margin, run.epoch_seconds + run.margin) == pytest.approx((low, high))
    (single,) = costs.find_runs([make_run(tmp_path / "b", [3.0])])
    assert single.margin is None


def test_speed_up_and_saving_count_the_whole_lineage(tmp_path: Path) -> None:
    teacher = make_run(tmp_path / "teacher", [40.0, 40.0], method="smoothmix")
    (read,) = costs.find_runs([teacher])
    link = Link("resnet20", "smoothmix", read.model_sha256, read.cost)
    make_run(tmp_path / "student", [5.0, 5.0], [link], method="crt")
    runs = costs.find_runs([tmp_path])
    assert [run.path.name for run in runs] == ["teacher", "student"]
    baseline = costs.choose_baseline(runs, None)
    assert baseline is not None
    assert baseline.path.name == "teacher"
    table, lineage = costs.tables(runs, baseline)
    student = dict(zip(table.columns, table.rows[1], strict=True))
    assert student["faster per epoch"].value == pytest.approx(8)
    assert student["faster in all"].value == pytest.approx(80 / 90)
    assert [row[-2].text for row in lineage.rows] == ["0.0 %", f"{100 * (1 - 90 / 160):.1f} %"]


def test_an_unknown_cost_stays_unknown(tmp_path: Path) -> None:
    make_run(tmp_path / "student", [5.0], [Link("resnet110", "unknown", "abc", None)], method="crt")
    runs = costs.find_runs([tmp_path])
    assert runs[0].lineage_seconds is None
    table, lineage = costs.tables(runs, None)
    assert dict(zip(table.columns, table.rows[0], strict=True))["with lineage"].text == "-"
    assert [row[4].text for row in lineage.rows] == ["-", "-"]


def test_a_place_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no training run"):
        costs.find_runs([tmp_path])


def test_costs_add_up() -> None:
    from smoothctl.cost import seconds, total, union

    lines = [{"seconds": 1.5, "forward_passes": 3}, {"seconds": 2.5, "forward_passes": 4, "teacher_passes": 2}]
    assert total(lines) == Cost(2, 4.0, 7, 0, 2)
    first, second = Link("a", "m", "1", Cost(1, 1.0, 0, 0, 0)), Link("b", "m", "2", Cost(1, 2.0, 0, 0, 0))
    assert union([[first, second], [first]]) == [first, second]
    assert seconds([first, second]) == 3.0
    assert seconds([first, Link("c", "m", "3")]) is None
