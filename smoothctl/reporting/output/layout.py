"""A table and its written forms: terminal, Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

LATEX = {letter: rf"\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


@dataclass(frozen=True)
class Cell:
    """What stands in a table: its text, the unrounded figure if it is one, and whether it is the best."""

    text: str
    value: float | None = None
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A titled table; ``texts`` are the columns that hold words and not figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    texts: Sequence[int] = (0,)
    note: str = ""

    def show(self) -> None:
        """Print on a terminal."""
        from smoothctl.base import console

        rows = [[cell.text for cell in row] for row in self.rows]
        console.table(rows, list(self.columns), self.title)
        if self.note:
            console.note(self.note)

    def markdown(self) -> str:
        """For a README or an issue."""
        rule = ["---" if at in self.texts else "---:" for at in range(len(self.columns))]
        body = [[_marked(cell, "**", "**", _bars) for cell in row] for row in self.rows]
        lines = [[_bars(name) for name in self.columns], rule, *body]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"**{self.title}**\n\n{table}{_below(self.note)}"

    def latex(self) -> str:
        """For a paper; needs the package booktabs."""
        sides = "".join("l" if at in self.texts else "r" for at in range(len(self.columns)))
        head = " & ".join(map(escape_latex, self.columns))
        body = [" & ".join(_marked(cell, r"\textbf{", "}", escape_latex) for cell in row) for row in self.rows]
        caption = escape_latex(f"{self.title}. {self.note}".strip())
        return "\n".join([
            r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{{sides}}}", r"\toprule", rf"{head} \\", r"\midrule",
            *(rf"{line} \\" for line in body), r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ])  # fmt: skip

    def csv(self) -> str:
        """For a spreadsheet."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([self.columns, *([cell.text for cell in row] for row in self.rows)])
        return text.getvalue().rstrip("\n")

    def html(self) -> str:
        """For a page: with a caption and the scopes of header cells."""
        head = "".join(f'<th scope="col"{self._side(at)}>{escape(name)}</th>' for at, name in enumerate(self.columns))
        body = []
        for row in self.rows:
            cells = "".join(
                f"<td{self._side(at)}>{_marked(cell, '<strong>', '</strong>', escape)}</td>"
                for at, cell in enumerate(row[1:], start=1)
            )
            body.append(
                f'<tr><th scope="row"><span>{_marked(row[0], "<strong>", "</strong>", escape)}</span></th>{cells}</tr>'
            )
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.title)}"><table>'
            f"<caption>{escape(self.title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>{note}"
        )

    def _side(self, at: int) -> str:
        return "" if at in self.texts else ' class="figure"'


def best(rows: Sequence[Sequence[Cell]], columns: Iterable[int]) -> list[list[Cell]]:
    """Mark the largest figure of each of these columns, all of them where several print alike."""
    marked = [list(row) for row in rows]
    for at in columns:
        figures = [row[at] for row in rows if row[at].value is not None]
        if len(figures) < 2:
            continue
        top = max(figures, key=lambda cell: cell.value or 0.0)
        if not top.value:
            continue
        for row in marked:
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


def escape(text: str) -> str:
    """Make a text safe in HTML."""
    return html.escape(text)
