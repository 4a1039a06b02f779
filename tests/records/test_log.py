"""Logs: what is written is read back, and what others wrote is read or refused clearly."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.records.columns import CERTIFY_COLUMNS, COLUMNS, PREDICT_COLUMNS
from smoothctl.records.log import format_votes, parse_votes, read_log, settings_path
from smoothctl.records.shards import merge_shards
from smoothctl.records.writer import open_log, part_path

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
        (HEADER + "1\t2\t2\t0.1\t1\t1\n1\t2\t2\t0.2\t1\t1\n", "line 3: idx 1 is in line 2 already"),
        ("\x00\x01", "no header"),
        (HEADER + "1\t2\t2\t0.1\t1\t1\n2\t2\t99999999999999999999\t0.1\t1\t1\n", "line 3.*predict 9+ is not between"),
        (HEADER + "1\t2\t2\t1_0\t1\t1\n", "'1_0' is not a number"),
        (HEADER + "1\t2\t٣\t0.1\t1\t1\n", "line 2"),
        (HEADER + "1\t2\t2\t1e999\t1\t1\n", "not finite"),
        (HEADER + "1.5\t2\t2\t0.1\t1\t1\n", "not a whole number"),
        (HEADER + "1\t2\t2\t0.1\t1\t1\t7\n", "7 cells, the header has 6"),
        ("idx\tidx\tlabel\tpredict\n", "names a column twice"),
        ('idx,label,predict,radius\n1,2,"2,0.1\n', "never closed|cells"),
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


def test_what_workers_left_is_taken_into_a_log_that_vanished_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    with open_log(path, ("idx", "status"), {"sigma": 1}, {}, [0, 1, 2], overwrite=False) as log:
        log.append(idx=0, status="ok")
        part_path(path, 1).write_text("1\tok\n")
        path.unlink()
        assert log.absorb() == {1}
        assert not part_path(path, 1).exists()
        log.append(idx=2, status="ok")
    assert path.read_text() == "idx\tstatus\n0\tok\n1\tok\n2\tok\n"


def test_public_logs_are_read(shared: Path) -> None:
    logs = sorted((shared / "data" / "logs").glob("cohen*.tsv"))
    counts = {path.name: len(read_log(path).rows) for path in logs}
    assert counts["cohen_imagenet_resnet50_noise_0.25_sigma_0.25.tsv"] == 427
    assert counts["cohen_cifar10_resnet110_noise_0.25_sigma_0.25.tsv"] == 500
    crlf = read_log(shared / "data" / "logs" / "crlf.tsv")
    assert crlf.rows[0].seconds == pytest.approx(25.450502)
    assert read_log(shared / "data" / "logs" / "cohen_predict_imagenet_noise_0.25_N_100.tsv").kind == "predict"


def test_commas_counts_with_a_point_and_a_repeated_header_are_read(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "a.csv", 'idx,"label",predict,radius,n\n3,1,1,0.5,100.0\n'))
    assert (log.rows[0].n, log.rows[0].radius) == (100, 0.5)
    again = read_log(write(tmp_path / "b.tsv", HEADER + "1\t2\t2\t0.1\t1\t1\n" + HEADER + "2\t2\t2\t0.1\t1\t1\n"))
    assert [row.idx for row in again.rows] == [1, 2]
    assert "line 3 repeats the header" in again.notices[0]
    with pytest.raises(SmoothctlError, match="line 3 is a second header: split the file there"):
        read_log(write(tmp_path / "c.tsv", (HEADER + "1\t2\t2\t0.1\t1\t1\n") * 2))


def test_packed_logs_are_read_and_the_settings_lie_beside_the_whole_name(tmp_path: Path) -> None:
    packed = tmp_path / "sigma_0.50.tsv.gz"
    packed.write_bytes(gzip.compress((HEADER + "1\t2\t2\t0.1\t1\t1\n").encode()))
    assert len(read_log(packed)) == 1
    assert settings_path(packed).name == settings_path(tmp_path / "sigma_0.50").name == "sigma_0.50.json"
    packed.write_bytes(packed.read_bytes()[:-12])
    with pytest.raises(SmoothctlError, match="cannot be read"):
        read_log(packed)


@pytest.mark.parametrize(
    ("sidecar", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[]", "is damaged"),
        ('{"settings": {"n": ""}}', r"settings\.n: .*\(it is ''\)"),
        ('{"settings": {"n0": {}}}', r"settings\.n0"),
        ('{"settings": {"alpha": 2}}', r"settings\.alpha"),
        ('{"settings": {"sigma": NaN}}', "NaN is no finite number"),
        ('{"settings": {"sigma": "0.25"}}', r"settings\.sigma"),
        ('{"settings": {"radii": [{}]}}', r"settings\.radii"),
        ('{"about": {"class_names": ["a", [[]]]}}', r"about\.class_names"),
        (
            '{"settings": {"places": "far"}, "about": {"tells": {"n_from": "votes", "grid": "places"}}}',
            r"settings\.places, the radii that rows are about, is no list of radii",
        ),
        ('{"planned": -1}', "planned"),
        ('{"planned": 1e400}', "1e400 is no finite number"),
    ],
)
def test_damaged_settings_get_one_line_that_names_the_entry(tmp_path: Path, sidecar: str, words: str) -> None:
    path = write(tmp_path / "a.tsv", HEADER + "1\t2\t2\t0.1\t1\t1\n")
    write(tmp_path / "a.json", sidecar)
    with pytest.raises(SmoothctlError, match=words) as caught:
        read_log(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_every_column_is_written_and_read_under_one_name() -> None:
    assert CERTIFY_COLUMNS[:6] == ("idx", "label", "predict", "radius", "correct", "time")
    assert set(CERTIFY_COLUMNS) | set(PREDICT_COLUMNS) == {column.name for column in COLUMNS}


CELL = st.one_of(
    st.integers(-3, 10**10).map(str), st.floats(allow_nan=True).map(repr), st.text(max_size=4).filter(str.isprintable),
)  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CELL, CELL, CELL, CELL, CELL, CELL, CELL), max_size=4))
def test_whatever_stands_in_cells_ends_in_facts_or_one_line(tmp_path: Path, rows: list[tuple[str, ...]]) -> None:
    header = "idx\tlabel\tpredict\tradius\ttime\tn\tvotes\n"
    path = write(tmp_path / "a.tsv", header + "".join("\t".join(row) + "\n" for row in rows))
    try:
        read = read_log(path).rows
    except SmoothctlError as error:
        read, said = (), str(error)
    else:
        said = ""
    assert "\n" not in said
    for row in read:
        assert 0 <= row.idx <= 10**9
        assert row.radius is not None
        assert 0 <= row.radius < float("inf")
        assert -1 <= row.predict <= 10**7
        assert row.n is None or 0 <= row.n <= 10**12


def test_decimal_commas_of_a_spreadsheet_are_read(tmp_path: Path) -> None:
    text = "idx;label;predict;radius;correct;time\n0;3;3;0,52;1;0:00:01\n1;2;-1;0,0;0;0:00:01\n2;2;2;1,5e-3;1;1\n"
    write(tmp_path / "a.csv", text)
    assert [row.radius for row in read_log(tmp_path / "a.csv").rows] == [0.52, 0.0, 0.0015]


def test_a_setting_that_is_null_is_one_that_is_not_stated(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", HEADER + "3\t1\t1\t0.1\t1\t1\n")
    settings_path(tmp_path / "a.tsv").write_text('{"settings": {"n0": null, "sigma": 0.5}, "planned": 1, "about": {}}')
    assert read_log(tmp_path / "a.tsv").settings == {"sigma": 0.5}


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e9999"])
def test_numbers_that_no_float_holds_are_no_json(number: str, tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", HEADER + "3\t1\t1\t0.1\t1\t1\n")
    settings_path(tmp_path / "a.tsv").write_text(f'{{"settings": {{"mine": {number}}}}}')
    with pytest.raises(SmoothctlError, match=r"a\.json is not valid JSON \(.*is no finite number"):
        read_log(tmp_path / "a.tsv")


OWN = {"votes": "", "selection": "", "status": "ok"}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text.replace("\t", ","), "has other columns"),
        (lambda text: text.encode("utf-16"), "it is no text"),
        (lambda text: text.replace("\n0\t", "\n0.0\t"), "does not begin with an index"),
    ],
)
def test_a_damaged_shard_is_one_line(damage: Any, words: str, tmp_path: Path) -> None:
    for shard in (1, 2):
        log = tmp_path / f"a.share-{shard}-of-2.tsv"
        with open_log(log, CERTIFY_COLUMNS, {"n": 10}, {"whole": 2}, [shard - 1], overwrite=False) as writer:
            writer.append(**{**dict.fromkeys(CERTIFY_COLUMNS, "0"), **OWN, "idx": shard - 1})
    damaged = damage(log.read_text().replace("\n1\t", "\n0\t"))
    log.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    with pytest.raises(SmoothctlError, match=words):
        merge_shards(tmp_path / "a.tsv", {})


def test_failed_rows_are_taken_out_and_done_again(tmp_path: Path) -> None:
    log = tmp_path / "a.tsv"
    for idx, status in ((0, "ok"), (1, "failed: OSError: gone")):
        with open_log(log, CERTIFY_COLUMNS, {"n": 10}, {}, [0, 1], overwrite=False) as writer:
            writer.append(**{**dict.fromkeys(CERTIFY_COLUMNS, "0"), **OWN, "idx": idx, "status": status})
    assert "failed" in log.read_text()
    with open_log(log, CERTIFY_COLUMNS, {"n": 10}, {}, [0, 1], overwrite=False) as writer:
        assert writer.done == {0}
        assert "failed" not in log.read_text()
