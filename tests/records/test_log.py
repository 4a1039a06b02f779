"""Logs: what is written is read back, and what others wrote is read or refused clearly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.records.log import CERTIFY_COLUMNS, format_votes, parse_votes, read_log
from smoothctl.records.writer import open_log

HEADER = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n"


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=1000))
def test_votes_survive_writing(votes: list[int]) -> None:
    assert parse_votes(format_votes(votes)) == {place: count for place, count in enumerate(votes) if count}


def test_columns_are_found_by_name_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "a.tsv", HEADER.replace("\n", "\r\n") + "3\t1\t1\t7.11e-05\t1\t0:01:02.5\r\n"))
    (row,) = log.rows
    assert (row.idx, row.radius, row.correct, row.seconds) == (3, 7.11e-05, True, 62.5)
    log = read_log(
        write(tmp_path / "b.tsv", "idx\tlabel\tpredict\tbasePredict\tcorrect\ttime\n3\t1\t1\t0\t1\t1 day, 0:00:01\n")
    )
    assert log.kind == "predict"
    assert log.rows[0].seconds == 86401


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no header"),
        (HEADER, "no rows"),
        ("hello\n", "no header"),
        (HEADER + "1\t2\tx\t0.1\t0\t1\n", "line 2"),
        (HEADER + "1\t2\t2\t-0.1\t1\t1\n", "line 2"),
        (HEADER + "1\t2\t2\tnan\t1\t1\n", "line 2"),
        (HEADER + "1\t2\n", "line 2"),
        (HEADER + "1\t2\t2\t0.1\t1\t1\n" * 2, "repeat an idx"),
        ("\x00\x01", "no header"),
    ],
)
def test_malformed_logs_get_a_clear_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SmoothctlError, match=words):
        read_log(write(tmp_path / "a.tsv", text))


def test_a_last_line_without_its_end_is_left_out_with_a_notice(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "a.tsv", HEADER + "20\t6\t6\t0.5\t1\t1\n40\t6\t6\t0.8"))
    assert [row.idx for row in log.rows] == [20]
    assert "cut short" in log.notices[0]


def test_a_foreign_log_is_never_written_to(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", HEADER + "20\t6\t6\t0.5\t1\t1\n")
    with (
        pytest.raises(UsageError, match="not known how it was made"),
        open_log(path, CERTIFY_COLUMNS, {}, {}, [0], False),
    ):
        pass
    assert path.read_text().endswith("20\t6\t6\t0.5\t1\t1\n")


def test_rows_end_up_in_the_order_of_images(tmp_path: Path) -> None:
    cells = dict.fromkeys(CERTIFY_COLUMNS, "0") | {"votes": "", "selection": "", "status": "ok"}
    with open_log(tmp_path / "a.tsv", CERTIFY_COLUMNS, {}, {}, [0, 5, 10], False) as log:
        for idx in (5, 0, 10):
            log.append(**{**cells, "idx": idx})
    assert [line.split("\t")[0] for line in (tmp_path / "a.tsv").read_text().splitlines()] == ["idx", "0", "5", "10"]


def test_public_logs_are_read(shared: Path) -> None:
    logs = sorted((shared / "data" / "logs").glob("cohen*.tsv"))
    counts = {path.name: len(read_log(path).rows) for path in logs}
    assert counts["cohen_imagenet_resnet50_noise_0.25_sigma_0.25.tsv"] == 427
    assert counts["cohen_cifar10_resnet110_noise_0.25_sigma_0.25.tsv"] == 500
    crlf = read_log(shared / "data" / "logs" / "crlf.tsv")
    assert crlf.rows[0].seconds == pytest.approx(25.450502)
    assert read_log(shared / "data" / "logs" / "cohen_predict_imagenet_noise_0.25_N_100.tsv").kind == "predict"
