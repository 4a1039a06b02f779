"""Every kind of plot to every ending; what a plot cannot show is said."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.records.attacks import ATTACK_COLUMNS
from smoothctl.records.run_directory import RunDirectory
from smoothctl.reporting.assemble import assemble
from smoothctl.reporting.output import drawing, parts, plots
from tests.reporting.make import certified_frame, radius_frame

VOTES = [[1000, 0, 0], [900, 50, 50], [400, 520, 80], [0, 0, 1000]]


def draw(kind: str, report):
    """Draw one kind of plot."""
    return parts.plots()[kind].draw(report)


@pytest.fixture
def report(tmp_path: Path):
    from dataclasses import replace

    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "epochs.jsonl").write_text('{"epoch": 0, "loss": 2.0, "heldout_accuracy": 0.5, "seconds": 1.0}\n')
    head = "\t".join(ATTACK_COLUMNS)
    (tmp_path / "a.attack.tsv").write_text(head + "\n0\t0\t0.4\t0.4 0.8\t0 1\t9\t3\t0.1\t\tok\n")
    (tmp_path / "a.attack.json").write_text(
        '{"format": 1, "settings": {"multiples": [1, 2]}, "planned": 1, "about": {"eligible": 2}}'
    )
    frames = [certified_frame(VOTES, [0, 0, 1, 2], name=name, sigma=sigma) for name, sigma in (("a", 0.25), ("b", 0.5))]
    return assemble(
        [replace(frame, path=tmp_path / f"{frame.name}.tsv") for frame in frames], runs=[RunDirectory(tmp_path)]
    )


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
@pytest.mark.parametrize("kind", [plot.name for plot in plots.PLOTS])
def test_every_kind_to_every_ending(report, tmp_path: Path, kind: str, ending: str):
    first, second = tmp_path / "out" / f"1{ending}", tmp_path / "out" / f"2{ending}"
    drawing.save(draw(kind, report), first)
    drawing.save(draw(kind, report), second)
    assert first.stat().st_size > 2000
    if ending != ".svg":
        assert first.read_bytes() == second.read_bytes()


@given(st.lists(st.floats(-1, 3), min_size=1, max_size=30), st.floats(0, 3))
def test_the_curve_is_certified_accuracy(proved, at):
    values = np.array(proved)
    radii, accuracy = drawing.as_steps(values)
    # matplotlib's steps-post: the height at a place is that of the last point at or before it; just below a radius
    # it is the certified accuracy there.
    place = np.searchsorted(radii, at, side="left") - 1
    if at > 0 and at not in radii:
        assert accuracy[place] == pytest.approx(np.mean(values >= at))


def test_series_differ_in_grey():
    """Neighbouring series differ in style, and no two of the first five in both style and brightness."""

    def grey(colour: str) -> float:
        return sum(weight * int(colour[at : at + 2], 16) for weight, at in ((0.299, 1), (0.587, 3), (0.114, 5))) / 255

    styles = [drawing.style_of(place) for place in range(5)]
    for one, other in combinations(styles, 2):
        assert one["linestyle"] != other["linestyle"] or abs(grey(one["color"]) - grey(other["color"])) > 0.1
    assert len({str(style["linestyle"]) for style in styles}) == 5


def test_what_cannot_be_drawn_is_said():
    bare = assemble([radius_frame([0.5], [1], [1])])
    for kind, line in (("ecdf", "needs votes"), ("envelope", "several"), ("learning", "no training history")):
        with pytest.raises(SmoothctlError, match=line):
            draw(kind, bare)
    with pytest.raises(SmoothctlError, match="no certification log"):
        draw("curve", assemble([]))


def test_of_many_logs_the_first_are_drawn_and_the_plot_says_so():
    figure = draw("curve", assemble([radius_frame([0.5], [1], [1], name=str(at)) for at in range(20)]))
    assert len(figure.axes[0].get_lines()) == drawing.MANY_SERIES
    assert [text.get_text() for text in figure.texts] == ["the first 12 of 20"]


def test_names_are_drawn_as_they_are(tmp_path: Path):
    names = ["$x^$", "_hidden", "a\x1b[31m", "100%"]
    frames = [certified_frame(VOTES, [0, 0, 1, 2], name=name) for name in names]
    for kind in ("curve", "envelope", "ecdf", "alpha"):
        figure = draw(kind, assemble(frames))
        drawing.save(figure, tmp_path / "a.svg")
    legend = draw("curve", assemble(frames)).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["$x^$", "_hidden", "a\\x1b[31m", "100%"]


def test_norms_never_share_axes(tmp_path: Path):
    frames = [certified_frame(VOTES, [0, 0, 1, 2], name=norm, norm=norm) for norm in ("l1", "l2")]
    for kind in ("curve", "envelope"):
        if kind == "envelope":
            frames += [certified_frame(VOTES, [0, 0, 1, 2], name="b", norm="l1")]
        figure = draw(kind, assemble(frames))
        drawing.save(figure, tmp_path / "a.png")
        assert [axes.get_xlabel()[:9] for axes in figure.axes] == ["L1 radius", "L2 radius"]


def test_a_plot_of_one_run_takes_one_whose_votes_are_known():
    known = certified_frame(VOTES, [0, 0, 1, 2], name="known", sigma=0.5)
    report = assemble([radius_frame([0.5], [1], [1], name="bare"), known])
    assert draw("alpha", report).axes[0].get_title(loc="left") == "known (one of 2 logs)"


@pytest.mark.parametrize(
    ("text", "kind", "path"),
    [("curve", "curve", "curve.png"), ("ecdf=a.pdf", "ecdf", "a.pdf"), ("out.svg", "curve", "out.svg")],
)
def test_kinds_are_read(text, kind, path):
    plot, place = parts.chosen_plot(text)
    assert (plot.name, place) == (kind, Path(path))


@pytest.mark.parametrize("text", ["pie=a.png", "curve=a.gif", "a", "curve="])
def test_other_kinds_and_endings_are_refused(text):
    with pytest.raises(UsageError, match="`plot="):
        parts.chosen_plot(text)
