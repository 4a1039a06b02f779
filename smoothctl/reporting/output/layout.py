"""A table and its written forms: terminal, Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

LATEX = {letter: rf"\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"$\sim$",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
# What spreadsheets take for a formula; a dash alone is none.
FORMULA = re.compile(r"[=+@\t\r]|-.")


@dataclass(frozen=True)
class Cell:
    """What stands in a table: its text, the unrounded figure if it is one, and whether it is the best."""

    text: str
    value: float | None = None
    bold: bool = False


@dataclass(frozen=True)
class Column:
    """One column. ``words`` hold texts and not figures. Where a terminal is narrow, the columns of the highest
    ``rank`` are left out first, those of rank 0 never. ``paper`` heads it in LaTeX; without one it is left out there.
    ``group`` stands above neighbours that share it."""

    name: str
    words: bool = False
    rank: int = 0
    paper: str | None = None
    group: str = ""


def words(name: str, rank: int = 0, paper: str | None = None) -> Column:
    """A column of texts."""
    return Column(name, True, rank, escape_latex(name) if paper is None else paper or None)


def figures(name: str, rank: int = 0, paper: str | None = None, group: str = "") -> Column:
    """A column of figures; ``paper=""`` leaves it out of LaTeX."""
    return Column(name, False, rank, escape_latex(name) if paper is None else paper or None, group)


@dataclass(frozen=True)
class Table:
    """A titled table. ``name`` labels it in LaTeX, where ``caption`` stands below."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    name: str = "table"
    caption: str = ""

    @property
    def heads(self) -> list[str]:
        return [column.name for column in self.columns]

    def show(self) -> None:
        """Print on a terminal."""
        from smoothctl.base import console

        rows = [[cell.text for cell in row] for row in self.rows]
        console.table(rows, self.heads, self.title, [column.rank for column in self.columns])
        if self.note:
            console.note(self.note)

    def markdown(self) -> str:
        """For a README or an issue."""
        rule = ["---" if column.words else "---:" for column in self.columns]
        body = [[_marked(cell, "**", "**", _bars) for cell in row] for row in self.rows]
        lines = [list(map(_bars, self.heads)), rule, *body]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"**{self.title}**\n\n{table}{_below(self.note)}"

    def latex(self) -> str:
        """For a paper: only the columns that papers print; needs the package booktabs."""
        shown = self._on_paper()
        columns = [self.columns[at] for at in shown]
        head = " & ".join(column.paper or "" for column in columns)
        body = [" & ".join(_marked(row[at], r"\textbf{", "}", escape_latex) for at in shown) for row in self.rows]
        caption = self.caption or escape_latex(self.title)
        return "\n".join([
            r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", rf"\caption{{{caption}}}",
            rf"\label{{tab:{re.sub('[^a-z0-9-]+', '-', self.name.lower()).strip('-')}}}",
            rf"\begin{{tabular}}{{{''.join('l' if column.words else 'r' for column in columns)}}}", r"\toprule",
            *_heads_above(columns), rf"{head} \\", r"\midrule",
            *(rf"{line} \\" for line in body), r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ])  # fmt: skip

    def _on_paper(self) -> list[int]:
        """The columns that papers print, and the first one too where rows would look alike without it."""
        shown = [at for at, column in enumerate(self.columns) if column.paper]
        keys = [at for at in shown if not self.columns[at].group and self.columns[at].words]
        keys += [at for at in shown if self.columns[at].name == "sigma"]
        named = {tuple(row[at].text for at in keys) for row in self.rows}
        return shown if len(named) == len(self.rows) or 0 in shown else [0, *shown]

    def csv(self) -> str:
        """For a spreadsheet; texts that it would take for formulas begin with an apostrophe."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.heads)
        writer.writerows(
            [
                _no_formula(cell.text) if column.words else cell.text
                for cell, column in zip(row, self.columns, strict=True)
            ]
            for row in self.rows
        )
        return text.getvalue().rstrip("\n")

    def html(self) -> str:
        """For a page: with a caption and the scopes of header cells."""
        from smoothctl.reporting.output.templates import render

        return render("table.html", table=self)


def _no_formula(text: str) -> str:
    return f"'{text}" if FORMULA.match(text) else text


def _heads_above(columns: Sequence[Column]) -> list[str]:
    """The line above the heads that names neighbours together, and the rules below its names."""
    if not any(column.group for column in columns):
        return []
    heads, rules, at = [], [], 1
    for group, members in groupby(columns, key=lambda column: column.group):
        width = len(list(members))
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{{group}}}" if group else " & " * (width - 1))
        rules += [rf"\cmidrule(lr){{{at}-{at + width - 1}}}"] if group else []
        at += width
    return [rf"{' & '.join(heads)} \\", "".join(rules)]


def best(
    rows: Sequence[Sequence[Cell]], columns: Iterable[int], alike: Sequence[Hashable | None] | None = None
) -> list[list[Cell]]:
    """Mark the largest figure of each of these columns, all of them where several print alike.

    Only rows that are ``alike`` (have the same key, and one at all) are compared; without keys all are.
    """
    keys = [0] * len(rows) if alike is None else alike
    marked = [list(row) for row in rows]
    for key in {key for key in keys if key is not None}:
        same = [row for row, other in zip(marked, keys, strict=True) if other == key]
        for at in columns:
            shown = [row[at] for row in same if row[at].value is not None]
            if len(shown) < 2:
                continue
            top = max(shown, key=lambda cell: cell.value or 0.0)
            if not top.value:
                continue
            for row in same:
                if row[at].value is not None and row[at].text.split()[0] == top.text.split()[0]:
                    row[at] = replace(row[at], bold=True)
    return marked


def _marked(cell: Cell, before: str, after: str, escape_text: Callable[[str], str]) -> str:
    text = escape_text(cell.text)
    return f"{before}{text}{after}" if cell.bold else text


def _bars(text: str) -> str:
    return text.replace("|", r"\|")


def _below(note: str) -> str:
    return f"\n\n{note}" if note else ""


def escape_latex(text: str) -> str:
    """Make a text safe in LaTeX."""
    return "".join(LATEX.get(letter, letter) for letter in text)
