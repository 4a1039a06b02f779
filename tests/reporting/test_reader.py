"""Logs as frames: what is found, what is refused, and what is on disk of others."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.reporting.frames import sigma_in
from smoothctl.reporting.reader import read_frame
from smoothctl.reporting.sources import cautions, detected, find_logs, read_logs
from tests.reporting.make import HEADER, write_log

ROWS = ["0 3 3 0.6 1 0.5", "20 3 3 0.1 1 0.5"]


def with_settings(path: Path, **settings: object) -> Path:
    """Put a settings file beside a log."""
    path.with_suffix(".json").write_text(json.dumps({"settings": settings, "planned": 2}))
    return path


def test_our_own_log_is_read(run_copy: Path):
    from smoothctl.cli import run

    assert run(["certify", str(run_copy), "--n", "50", "--max", "6", "--device", "cpu"]) == 0
    frame = read_frame(run_copy / "certify.tsv")
    assert frame.group == ("digits", "gaussian", "lenet")
    assert frame.alpha == 0.001
    assert sum(frame.votes[0].values()) == 50
    assert frame.line.tolist() == [2, 3, 4, 5, 6, 7]
    assert not frame.guessed


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "no header"), (f"{HEADER}\n", "no rows"), ("hello\n", "no header with the columns"),
        (f"{HEADER}\n0\t1\t1\tx\t1\t2\n", "line 2"),
        (f"{HEADER}\n0\t1\t1\t0.1\t1\t2\n0\t1\t1\t0.2\t1\t2\n", "line 3: idx 0"),
    ],
)  # fmt: skip
def test_malformed_logs_get_one_line(tmp_path: Path, text: str, line: str):
    path = tmp_path / "bad.tsv"
    path.write_text(text)
    with pytest.raises(SmoothctlError, match=line) as caught:
        read_frame(path)
    assert "\n" not in str(caught.value)


def test_a_cut_line_is_left_out_with_a_notice(tmp_path: Path):
    path = write_log(tmp_path / "x.tsv", ["20 6 6 0.871 1 1.0"])
    path.write_text(path.read_text() + "40\t6\t6\t0.8")
    frame = read_frame(path)
    assert frame.idx.tolist() == [20]
    assert "cut short" in frame.notices[0]


def test_a_prediction_log_with_other_columns(tmp_path: Path):
    path = write_log(tmp_path / "p.tsv", ["0 1 1 7 1 0.5"], "idx\tlabel\tpredict\tbasePredict\tcorrect\ttime")
    frame = read_frame(path)
    assert (frame.kind, frame.correct.tolist()) == ("predict", [True])


def test_logs_are_found_by_what_is_in_them(tmp_path: Path):
    for name in ("a/sigma_0.25", "a/noise_0.50_1801", "b/certify.txt"):
        write_log(tmp_path / name, ROWS)
    packed = tmp_path / "b" / "sigma_1.00.tsv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a" / "sigma_0.25").read_bytes()))
    (tmp_path / "b" / "notes.txt").write_text("idx of nothing\n")
    (tmp_path / "b" / "blob").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "b" / "packed.gz").write_bytes(b"\x1f\x8b broken")
    found = find_logs([tmp_path])
    assert [path.name for path in found] == ["noise_0.50_1801", "sigma_0.25", "certify.txt", "sigma_1.00.tsv.gz"]
    frames, problems = read_logs(found)
    assert not problems
    assert [frame.name for frame in frames] == ["a/noise_0.50_1801", "a/sigma_0.25", "b/certify", "b/sigma_1.00"]
    assert [frame.sigma for frame in frames] == [0.5, 0.25, None, 1.0]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="has no log yet"):
        find_logs([tmp_path / "empty"])


@pytest.mark.parametrize(
    ("path", "sigma"),
    [
        ("logs/sigma_0.50", 0.5), ("logs/sigma_0.50.tsv", 0.5), ("noise_0.12/sigma_0.25.tsv.gz", 0.25),
        ("noise_1.00/test", 1.0), ("sigma_0/x.tsv", None), ("cifar10/x.tsv", None), ("sigma=0.25/a", 0.25),
    ],
)  # fmt: skip
def test_a_scale_is_read_from_names_without_cutting_at_a_point(path: str, sigma: float | None):
    assert sigma_in(Path(path)) == sigma


def test_two_names_that_differ_in_their_ending_stay_apart(tmp_path: Path):
    frames, _ = read_logs([write_log(tmp_path / name, ROWS) for name in ("sigma_0.50", "sigma_0.50.tsv", "x.tsv")])
    assert [frame.name for frame in frames] == ["sigma_0.50", "sigma_0.50.tsv", "x"]


def test_a_radius_that_nothing_proves_is_refused_with_its_line(tmp_path: Path):
    bare = write_log(tmp_path / "bare.tsv", [*ROWS, "40 3 3 313 1 0.5"])
    with pytest.raises(SmoothctlError, match=r"line 4: radius 313 is beyond .* decimal point"):
        read_frame(bare)
    settings = {"sigma": 0.25, "n": 1000, "alpha": 0.001, "noise": "gaussian"}
    above = with_settings(write_log(tmp_path / "above.tsv", ["0 3 3 0.6158 1 0.5", "1 3 3 0.62 1 0.5"]), **settings)
    with pytest.raises(
        SmoothctlError, match=r"line 3: radius 0\.62 cannot be: 1,000 noise samples prove at most 0\.6158"
    ):
        read_frame(above)
    header = f"{HEADER}\tp_lower"
    untrue = with_settings(
        write_log(tmp_path / "u.tsv", ["0 3 3 0.2 1 0.5 0.7", "1 3 3 0.1 1 0.5 0.8"], header), **settings
    )
    with pytest.raises(SmoothctlError, match=r"line 2: radius 0\.2 cannot be: its p_lower 0\.7 proves 0\.1311"):
        read_frame(untrue)
    unknown = with_settings(above, **{**settings, "noise": "cauchy"})
    assert "noise 'cauchy' is not installed" in read_frame(unknown).notices[0]


def test_a_name_that_the_radii_contradict_says_nothing(tmp_path: Path):
    frame = read_frame(write_log(tmp_path / "noise_0.12.tsv", ["0 3 3 3.1 1 0.5"]))
    assert frame.sigma is None
    assert not frame.guessed
    assert "rules out" in frame.notices[0]


def test_what_was_inferred_counts_in_every_caution(tmp_path: Path):
    frames, _ = read_logs([write_log(tmp_path / name, ROWS) for name in ("sigma_0.25", "sigma_0.50")])
    assert all(frame.guessed == {"sigma"} for frame in frames)
    said = cautions(detected(frames)[0])
    assert "the logs differ in sigma: ~0.25, ~0.5" in said
    assert any("n is not known of sigma_0.25, sigma_0.50" in line for line in said)


@pytest.mark.parametrize(
    ("key", "values"), [("transform", ("resize 32", "resize 24")), ("sigma", (0.25, 0.5)), ("norm", ("l1", "l2"))]
)
def test_what_differs_is_named(tmp_path: Path, key: str, values: tuple[object, object]):
    frames, _ = read_logs([
        with_settings(write_log(tmp_path / f"{place}.tsv", ROWS), **{"sigma": 0.5, key: value})
        for place, value in enumerate(values)
    ])  # fmt: skip
    assert any(line.startswith(f"the logs differ in {key}: ") for line in cautions(frames))


def test_other_seeds_of_one_model_are_named(tmp_path: Path):
    frames, _ = read_logs([
        with_settings(write_log(tmp_path / f"{seed}.tsv", ROWS), sigma=0.5, model="abc", seed=seed) for seed in (0, 1)
    ])  # fmt: skip
    assert any("other seeds: each look spends alpha again" in line for line in cautions(frames))


def test_the_cases_end_in_facts_or_in_one_line(shared: Path, tmp_path: Path):
    cases = shared / "cases" / "logs"
    refused = {}
    for path in sorted(cases.iterdir()):
        if path.suffix == ".json":
            continue
        copied = Path(shutil.copy(path, tmp_path))
        if path.with_suffix(".json").exists():
            shutil.copy(path.with_suffix(".json"), tmp_path)
        try:
            frame = read_frame(copied)
        except SmoothctlError as error:
            refused[path.name] = str(error)
        else:
            assert np.isfinite(frame.radius).all()
    assert not any("\n" in line for line in refused.values())
    for name, line in (
        ("decimal_points_lost.tsv", "line 2"), ("radius_1e7.tsv", "line 2"), ("radius_without_point.tsv", "line 8"),
        ("label_1e20.tsv", "line 2"), ("votes_one_bad_byte.tsv", "line 2"), ("damaged_04_typeerror.tsv", "settings.n:"),
    ):  # fmt: skip
        assert line in refused[name]
    assert not {"sigma_0.50", "sigma_0.50.tsv", "b_sigma_1.00.tsv"} & set(refused)
