"""What training cost: intervals, speed-up and saving against an independent computation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from smoothctl.base.errors import UsageError
from smoothctl.records.cost import Cost, Link
from smoothctl.reporting import costs


def make_run(
    path: Path,
    seconds: list[float],
    teachers: list[Link] | None = None,
    method: str = "gaussian",
    epochs: int | None = None,
) -> Path:
    """A run directory as training leaves it."""
    path.mkdir(parents=True)
    about = {"lineage": [link.as_plain() for link in teachers or []]}
    settings = {"method": method, "arch": "resnet20", "dataset": "cifar10", "epochs": epochs or len(seconds)}
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
    student = dict(zip(table.heads, table.rows[1], strict=True))
    assert student["faster per epoch"].value == pytest.approx(8)
    assert student["faster in all"].value == pytest.approx(80 / 90)
    assert [row[-2].text for row in lineage.rows] == ["0.0 %", f"{100 * (1 - 90 / 160):.1f} %"]


def test_teachers_side_by_side_are_one_generation(tmp_path: Path) -> None:
    links = [Link("resnet20", "gaussian", name, Cost(1, 10.0, 0, 0, 0)) for name in ("a", "b")]
    make_run(tmp_path / "direct", [30.0])
    make_run(tmp_path / "student", [5.0], links, method="crt")
    runs = costs.find_runs([tmp_path])
    assert [run.generation for run in runs] == [0, 1]
    _, lineage = costs.tables(runs, runs[0])
    assert [row[0].text for row in lineage.rows] == ["0", "0", "1"]
    assert lineage.rows[-1][-2].text == f"{100 * (1 - 25 / 60):.1f} %"


def test_a_run_under_way_is_marked_and_saves_nothing_yet(tmp_path: Path) -> None:
    make_run(tmp_path / "direct", [30.0])
    make_run(tmp_path / "student", [5.0], [Link("r", "gaussian", "a", Cost(1, 1.0, 0, 0, 0))], epochs=200)
    runs = costs.find_runs([tmp_path])
    table, *lineages = costs.tables(runs, runs[0])
    row = dict(zip(table.heads, table.rows[1], strict=True))
    assert row["epochs"].text == "1/200 INCOMPLETE"
    assert row["faster in all"].text == "-"
    assert not lineages


def test_a_baseline_is_one_finished_run_without_a_teacher(tmp_path: Path) -> None:
    student = make_run(tmp_path / "runs" / "student", [5.0], [Link("r", "gaussian", "a")])
    unfinished = make_run(tmp_path / "runs" / "unfinished", [5.0], epochs=3)
    for asked, reason in ((student, "had a teacher"), (unfinished, "not finished"), (tmp_path / "runs", "2 runs")):
        with pytest.raises(UsageError, match=reason):
            costs.choose_baseline([], asked)


def test_acr_is_that_of_the_usual_log_and_never_of_a_part(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [5.0])

    def log(name: str, radius: float, planned: int, **about: object) -> None:
        settings = {"sigma": 0.5, "n": 1000, "n0": 100, "alpha": 0.001}
        (run / f"{name}.json").write_text(json.dumps({"settings": settings, "planned": planned, "about": about}))
        (run / f"{name}.tsv").write_text(f"idx\tlabel\tpredict\tradius\tcorrect\ttime\n0\t1\t1\t{radius}\t1\t1.0\n")

    log("certify.share-1-of-2", 0.1, 1, shard="1/2")
    log("certify-cut", 0.2, 2)
    assert costs.find_runs([run])[0].acr is None
    log("certify-other", 0.3, 1)
    assert costs.find_runs([run])[0].acr == pytest.approx(0.3)
    log("certify", 0.4, 1)
    (read,) = costs.find_runs([run])
    assert read.acr == pytest.approx(0.4)
    assert "1 images (0) at sigma 0.5 with n = 1000" in read.certified


def test_an_unknown_cost_stays_unknown(tmp_path: Path) -> None:
    make_run(tmp_path / "student", [5.0], [Link("resnet110", "unknown", "abc")], method="crt")
    runs = costs.find_runs([tmp_path])
    assert runs[0].lineage_seconds is None
    table, lineage = costs.tables(runs, None)
    assert dict(zip(table.heads, table.rows[0], strict=True))["with lineage"].text == "-"
    assert [row[4].text for row in lineage.rows] == ["-", "-"]


def test_a_place_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no training run"):
        costs.find_runs([tmp_path])


def test_costs_add_up() -> None:
    from smoothctl.records.cost import seconds, total, union

    lines = [{"seconds": 1.5, "forward_passes": 3}, {"seconds": 2.5, "forward_passes": 4, "teacher_passes": 2}]
    assert total(lines) == Cost(2, 4.0, 7, 0, 2)
    first, second = Link("a", "m", "1", Cost(1, 1.0, 0, 0, 0)), Link("b", "m", "2", Cost(1, 2.0, 0, 0, 0))
    assert union([[first, second], [first]]) == [first, second]
    assert seconds([first, second]) == 3.0
    assert seconds([first, Link("c", "m", "3")]) is None
