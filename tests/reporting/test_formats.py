"""Tables in every written form, and published rows."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoothctl.base.errors import UsageError
from smoothctl.reporting.assemble import assemble
from smoothctl.reporting.measures import published
from smoothctl.reporting.output import parts
from smoothctl.reporting.output.layout import Cell, Table, best, escape_latex, figures, words
from tests.reporting.make import certified_frame, radius_frame

COLUMNS = [words("run_1"), figures("acc %")]
TABLE = Table("A & B", COLUMNS, [[Cell("x|y_z"), Cell("61.20", 0.612, bold=True)]], note="100 %", name="A b")


def test_markdown_keeps_bars_inside_cells():
    assert "| x\\|y_z | **61.20** |" in TABLE.markdown()
    assert "| --- | ---: |" in TABLE.markdown()


def test_csv_reads_back():
    assert list(csv.reader(io.StringIO(TABLE.csv()))) == [["run_1", "acc %"], ["x|y_z", "61.20"]]


def test_html_has_a_caption_and_scopes():
    text = TABLE.html()
    for part in (
        "<caption>A &amp; B</caption>",
        '<th scope="col">run_1</th>',
        '<th scope="row">',
        "<strong>61.20</strong>",
    ):
        assert part in text


def test_latex_uses_booktabs_and_escapes():
    text = TABLE.latex()
    for part in (
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
        r"run\_1 & acc \%",
        r"\textbf{61.20}",
        r"\caption{A \& B}",
        r"\label{tab:a-b}",
    ):
        assert part in text
    assert text.count(r"\begin{") == text.count(r"\end{")


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_escaped_latex_leaves_no_special_letter_bare(text):
    bare = escape_latex(text)
    for command in (
        r"\textbackslash{}",
        r"$\sim$",
        r"\textasciicircum{}",
        r"\textless{}",
        r"\textgreater{}",
        r"\textbar{}",
    ):
        bare = bare.replace(command, "")
    for letter in "&%$#_{}":
        bare = bare.replace(f"\\{letter}", "")
    assert not set(bare) & set("\\&%$#_{}~^<>|")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path: Path):
    report = _report()
    tables = shown(report, parts.ALL)
    body = "\n".join(table.latex() for table in tables)
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n" + body + "\n\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "t.pdf").exists()


def shown(report, *names: str) -> list[Table]:
    """The tables of these kinds and those that are always there."""
    tables, problems = parts.build(parts.chosen_tables(names), report)
    assert not problems
    return tables


def _report():
    votes = [[1000, 0, 0], [900, 50, 50], [400, 500, 100], [0, 0, 1000]]
    frames = [
        certified_frame(votes, [0, 0, 1, 2], name="low_1", sigma=0.25, dataset="digits"),
        certified_frame(votes[::-1], [0, 0, 1, 2], name="high#2", sigma=0.5, dataset="digits"),
    ]
    return assemble(frames, (0.0, 0.25, 0.5))


def test_the_best_of_a_column_is_bold_and_ties_all_are():
    rows = [[Cell("a"), Cell("50.00", 0.5)], [Cell("b"), Cell("60.00", 0.6)], [Cell("c"), Cell("60.00", 0.60000001)]]
    assert [row[1].bold for row in best(rows, [1])] == [False, True, True]
    assert not best(rows[:1], [1])[0][1].bold
    assert not best([[Cell("a"), Cell("0.00", 0.0)], [Cell("b"), Cell("0.00", 0.0)]], [1])[0][1].bold


def test_every_table_has_as_many_cells_as_columns():
    tables = shown(_report(), parts.ALL)
    assert len(tables) >= 8
    for table in tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_runs_are_grouped_and_named_by_group():
    about = {"model": {"method": "crt", "arch": "lenet"}}
    one = certified_frame([[100, 0]], [0], name="b", dataset="digits", sigma=0.5)
    from dataclasses import replace

    table = shown(assemble([replace(one, about=about), one]))[0]
    assert [column.name for column in table.columns[:4]] == ["run", "dataset", "method", "arch"]
    assert [row[2].text for row in table.rows] == ["?", "crt"]


# Printed in the papers; table 15's shifted rows as they should read.
PRINTED = [
    ("crt2022", "table 2", "crt", "regnetx_200mf", 0.25, (77.89, 69.57, 59.36, 47.28), 0.564),
    ("crt2022", "table 3", "crt", "dla", 0.25, (78.46, 70.05, 60.01, 48.30), 0.570),
    (
        "crt2022",
        "table 8",
        "smoothmix",
        "resnet110",
        0.5,
        (65.01, 57.71, 49.99, 42.74, 35.98, 29.43, 23.52, 17.33),
        0.725,
    ),
    (
        "crt2022",
        "table 9",
        "crt",
        "dla",
        1.0,
        (48.38, 43.67, 38.82, 33.76, 29.4, 25.53, 21.94, 18.71, 15.32, 12.61),
        0.741,
    ),
    ("crt2022", "table 15", "gaussian", "resnet110", 0.25, (81.41, 67.75, 49.67, 32.37), 0.486),
    ("crt2022", "table 15", "gaussian", "vit", 0.25, (48.77, 32.70, 18.78, 8.98), 0.211),
    ("crt2022", "table 14", "crt", "regnetx_4gf", 0.5, (), 0.788),
    ("cohen2019", "vary_noise_cifar10", "gaussian", "resnet110", 0.12, (), None),
]


@pytest.mark.parametrize(("paper", "table", "method", "arch", "sigma", "accuracies", "acr"), PRINTED)
def test_published_rows(paper, table, method, arch, sigma, accuracies, acr):
    rows, sources = published.load()
    found = [
        row
        for row in rows
        if (row.paper, row.table, row.method, row.arch, row.sigma) == (paper, table, method, arch, sigma)
    ]
    assert len(found) == 1
    assert found[0].acr == acr
    assert [found[0].accuracy(0.25 * place) for place in range(len(accuracies))] == pytest.approx(
        [value / 100 for value in accuracies]
    )
    assert sources[paper]


def test_published_rows_stand_in_the_paper(shared: Path):
    """Every figure of the CRT rows is printed in the paper, in one line but for hours."""
    lines = (shared / "papers" / "crt_neurips2022.txt").read_text().split("\n")
    cells = [set(line.split("\t")) for line in lines]
    for row in published.load()[0]:
        if row.paper == "crt2022" and row.certified:
            printed = {f"{100 * share:.2f}" for share in row.certified.values()} | {f"{row.acr:.3f}"}
            printed = {text.replace("29.40", "29.4") if "DLA" in text else text for text in printed}
            assert any(
                printed <= line or {text.replace("29.40", "29.4") for text in printed} <= line for line in cells
            ), row
    assert {row.table for row in published.load()[0] if row.paper == "crt2022"} == {f"table {n}" for n in range(2, 16)}


def test_against_puts_rows_of_the_same_dataset_and_sigma_beside():
    frame = radius_frame([0.3, 0.1], [1, 1], [1, 2], settings={"sigma": 0.25, "dataset": "cifar10", "alpha": 0.001})
    report = assemble([frame], (0.0, 0.25, 0.5), against=("crt2022",))
    _, table = shown(report)
    assert table.rows[0][1].text == "this report"
    assert {row[3].text for row in table.rows[1:]} == {"0.25"}
    assert len(table.rows) > 20
    assert "NeurIPS 2022" in table.note


def test_against_says_what_there_is():
    frame = radius_frame([0.3], [1], [1], settings={"sigma": 0.3, "dataset": "digits", "alpha": 0.001})
    with pytest.raises(UsageError, match=r"no published row is of digits at sigma 0\.3"):
        published.matching(["all"], [frame])
    with pytest.raises(UsageError, match="choose cohen2019"):
        published.matching(["other"], [frame])
