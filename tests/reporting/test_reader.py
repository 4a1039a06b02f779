"""Reading in columns agrees with reading row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smoothctl.base.errors import SmoothctlError
from smoothctl.records.log import read_log
from smoothctl.reporting.frames import ARRAYS, Frame, from_log
from smoothctl.reporting.reader import read_frame
from tests.reporting.make import HEADER, write_log

ROW = st.tuples(
    st.integers(0, 9), st.integers(-1, 9), st.sampled_from(["0.0", "0.978", "7.11e-05", "1.91", "-0.5", "nan", "x"]),
    st.sampled_from(["0:00:16.301146", "1 day, 2:03:04", "15.4", "0:0:28.5", "soon"]),
)  # fmt: skip


def _outcome(read: Callable[[], Frame]) -> Frame | str:
    try:
        return read()
    except SmoothctlError as error:
        return str(error)


def _same(path: Path) -> None:
    slow, fast = _outcome(lambda: from_log(read_log(path))), _outcome(lambda: read_frame(path))
    if isinstance(slow, str) or isinstance(fast, str):
        assert fast == slow
        return
    for name in ARRAYS:
        assert np.array_equal(getattr(fast, name), getattr(slow, name), equal_nan=name in ("radius", "seconds")), name
    for field in fields(fast):
        if field.name not in (*ARRAYS, "votes_text"):
            assert getattr(fast, field.name) == getattr(slow, field.name), field.name
    assert fast.votes == slow.votes


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROW, max_size=6), st.permutations(range(6)), st.booleans())
def test_both_readers_agree(tmp_path: Path, rows, order, cut):
    lines = [
        "\t".join([str(order[at]), str(label), str(predict), radius, "1", time])
        for at, (label, predict, radius, time) in enumerate(rows)
    ]
    path = tmp_path / "log.tsv"
    text = "\n".join([HEADER, *lines]) + "\n"
    path.write_text(text[:-3] if cut else text)
    _same(path)


def test_both_readers_agree_on_our_own_log(run_copy: Path):
    from smoothctl.cli import run

    assert run(["certify", str(run_copy), "--n", "50", "--max", "6", "--device", "cpu"]) == 0
    _same(run_copy / "certify.tsv")
    frame = read_frame(run_copy / "certify.tsv")
    assert frame.group == ("digits", "gaussian", "lenet")
    assert frame.alpha == 0.001
    assert sum(frame.votes[0].values()) == 50


def test_both_readers_agree_on_public_logs(shared: Path):
    for path in sorted((shared / "data" / "logs").glob("*.tsv")):
        if path.stat().st_size < 100_000:
            _same(path)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "no header"), (f"{HEADER}\n", "no rows"), ("hello\n", "no header with the columns"),
        (f"{HEADER}\n0\t1\t1\tx\t1\t2\n", "line 2"),
        (f"{HEADER}\n0\t1\t1\t0.1\t1\t2\n0\t1\t1\t0.1\t1\t2\n", "repeat an idx"),
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
