"""``smoothctl.report`` from Python: figures, tables, plots, pages and gates without the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import smoothctl
from smoothctl import SmoothctlError, UsageError

LOG = (
    "idx\tlabel\tpredict\tradius\tcorrect\ttime\n"
    "0\t3\t3\t0.378\t1\t15.4\n1\t7\t-1\t0.0\t0\t15.6\n2\t4\t4\t0.341\t1\t15.7\n3\t4\t5\t0.9\t0\t15.7\n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "some.tsv"
    path.parent.mkdir()
    path.write_text(LOG)
    return path


@pytest.mark.parametrize("given", ["a path", "a text", "its folder", "several"])
def test_logs_are_found_wherever_they_are_said_to_be(log: Path, given: str) -> None:
    places = {"a path": log, "a text": str(log), "its folder": log.parent, "several": [str(log)]}
    report = smoothctl.report(places[given], radii=(0, 0.35))  # type: ignore[arg-type]
    (summary,) = report.summaries
    assert summary.certified == (0.5, 0.25)


def test_what_it_makes(log: Path, tmp_path: Path) -> None:
    report = smoothctl.report(log, radii=(0, 0.35))
    tables = report.tables("measures")
    assert "50.00,25.00" in tables[0].csv()
    assert len(tables) > 1
    report.draw("curve", tmp_path / "curve.svg")
    assert "<svg" in (tmp_path / "curve.svg").read_text()
    assert "50" in report.write_page(tmp_path / "page").read_text()
    assert report.unmet("acc@0>=0.5") == []
    assert report.unmet("acc@0.35>=0.3") == ["acc@0.35>=0.3: some has 0.25"]


def test_what_it_refuses(log: Path) -> None:
    report = smoothctl.report(log)
    with pytest.raises(UsageError, match="`show=nonsense`: choose"):
        report.tables("nonsense")
    with pytest.raises(UsageError, match=r"`plot=nonsense=a\.png`: choose"):
        report.draw("nonsense", "a.png")
    with pytest.raises(UsageError, match="`require=acc>=1`: write"):
        report.unmet("acc>=1")
    with pytest.raises(UsageError, match="`what_if=alpha`: write it as name=value"):
        smoothctl.report(log, what_if=("alpha",))
    with pytest.raises(SmoothctlError):
        smoothctl.report(log.parent / "nothing")


def test_logs_that_cannot_be_read_are_told_and_kept_apart(log: Path) -> None:
    (log.parent / "bad.tsv").write_text(LOG.replace("0.341", "radius"))
    report = smoothctl.report(log.parent)
    assert len(report.frames) == 1
    assert "bad.tsv" in report.problems[0]
