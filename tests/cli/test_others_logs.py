"""Logs of others, as they lie on people's disks, typed at the command line: what is shown, named, or refused."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from smoothctl.reporting.measures.metrics import default_radii
from tests.cli.conftest import Typed
from tests.reporting.make import radius_frame, write_log


def field_log(path: Path, sigma: float = 0.5, rows: int = 40, n: int = 100_000, alpha: float = 0.001) -> Path:
    """A log as earlier research code prints it: radii of CERTIFY to three digits, the largest at its cap."""
    share = np.linspace(0.6, 1.0, rows)
    votes = np.round(share * n)
    bound = np.where(votes < n, stats.beta.ppf(alpha, votes, n - votes + 1), alpha ** (1 / n))
    radius = sigma * stats.norm.ppf(bound)
    return write_log(path, [f"{at} 1 1 {value:.3g} 1 0:00:10.5" for at, value in enumerate(radius)])


def own_log(path: Path, radii: list[float] | None = None, votes: int = 10_000, **settings: object) -> Path:
    """A log of ours, with its settings beside it."""
    lower = float(stats.beta.ppf(0.001, votes - 100, 101))
    values = radii or [0.5 * float(stats.norm.ppf(lower))] * 4
    write_log(path, [f"{at} 1 1 {value!r} 1 1.0" for at, value in enumerate(values)])
    known = {"sigma": 0.5, "n": votes, "n0": 100, "alpha": 0.001, "rule": "cohen", "noise": "gaussian", "norm": "l2"}
    content = {"format": 1, "settings": known | settings, "planned": 4, "about": {}}
    path.with_suffix(".json").write_text(json.dumps(content))
    return path


def test_settings_that_were_inferred_and_differ_are_warned_of_and_never_compete(typed: Typed, workplace: Path) -> None:
    field_log(workplace / "logs" / "a_sigma_0.50.tsv", 0.5)
    field_log(workplace / "logs" / "b_sigma_1.00.tsv", 1.0)
    done = typed("report logs --format markdown")
    assert "differ in sigma" in done.err
    assert typed("report logs --strict").code == 1
    marked = [line for line in done.out.splitlines() if "**" in line.removeprefix("**")]
    assert not [line for line in marked if "a_sigma" in line or "b_sigma" in line], "bold crosses settings"


def test_a_page_of_logs_of_two_datasets_shows_what_it_can(typed: Typed, workplace: Path) -> None:
    own_log(workplace / "logs" / "one.tsv", dataset="cifar10", split="test")
    own_log(workplace / "logs" / "two.tsv", dataset="imagenet", split="val")
    done = typed("report logs --out page")
    assert done.code in (0, 1)
    assert (workplace / "page" / "index.html").is_file()
    assert "Traceback" not in done.err


def test_a_plot_of_many_logs_is_drawn_and_says_what_it_left_out(typed: Typed, workplace: Path) -> None:
    for at in range(14):
        field_log(workplace / "logs" / f"run{at:02}_sigma_0.50.tsv")
    done = typed("report logs --plot curve=curve.png")
    assert done.code == 0, done.err
    assert (workplace / "curve.png").stat().st_size > 1000


def test_a_run_without_a_log_fails_a_gate_and_is_named(typed: Typed, run_copy: Path, workplace: Path) -> None:
    shutil.copytree(run_copy, workplace / "runs" / "other")
    field_log(workplace / "runs" / "good_sigma_0.50.tsv")
    done = typed("report runs --require acr>=0")
    assert done.code == 3
    assert "other" in done.err


def test_the_grid_keeps_quarters_as_far_as_any_log_needs() -> None:
    small, large = radius_frame([0.3, 0.9], [1, 1], [1, 1]), radius_frame([3.8, 3.7], [1, 1], [1, 1])
    assert {0.25, 0.75} <= set(default_radii([small, large]))
    assert len(default_radii([radius_frame([400.0], [1], [1])])) < 100


def test_norms_are_named_and_never_share_a_column(typed: Typed, workplace: Path) -> None:
    own_log(workplace / "logs" / "l2.tsv")
    own_log(workplace / "logs" / "l1.tsv", [0.25] * 4, noise="laplace-of-others", norm="l1")
    done = typed("report logs --format markdown")
    assert "L1" in done.out
    assert "L2" in done.out


def test_abstention_means_one_thing_in_its_column(typed: Typed, workplace: Path) -> None:
    write_log(workplace / "asked.tsv", ["0 1 1 0.5 1 1.0", "1 1 -1 0.0 0 1.0", "2 1 -1 0.0 0 1.0", "3 1 1 0.5 1 1.0"])
    settings = {"sigma": 0.5, "n": 1000, "n0": 100, "alpha": 0.001, "rule": "radii", "radii": [0.5], "norm": "l2"}
    content = {"format": 1, "settings": settings, "planned": 4, "about": {}}
    (workplace / "asked.json").write_text(json.dumps(content))
    rows = list(csv.DictReader(io.StringIO(typed("report asked.tsv --format csv").out)))
    assert rows[0]["abstain"] == "-"


def test_formulas_and_controls_in_names_stay_text(typed: Typed, workplace: Path) -> None:
    field_log(workplace / "=cmd|calc_sigma_0.50.tsv")
    field_log(workplace / "red\x1b[31m_sigma_0.50.tsv")
    table = typed("report . --format csv").out
    assert not [cell for row in csv.reader(io.StringIO(table)) for cell in row if cell.startswith("=")]
    shown = typed("report .")
    assert "\x1b[31m" not in shown.out + shown.err


@pytest.mark.parametrize("folder", ["logs", "runs"])
def test_every_file_that_failed_before_ends_in_figures_or_in_one_line(
    typed: Typed, shared: Path, workplace: Path, folder: str
) -> None:
    for case in sorted((shared / "cases" / folder).iterdir()):
        if case.suffix == ".json":
            continue
        done = typed(f"report {case}")
        assert done.code in (0, 1, 2), case
        assert "Traceback" not in done.err, case
        if done.code:
            assert done.err.splitlines()[-1].startswith("smoothctl: "), (case, done.err)
