"""What a report is to show, hold against, and write."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from smoothctl.base.settings import Option, Radii, Settings

Format = Literal["rich", "markdown", "latex", "csv", "json", "html"]
SHOWN, OUTPUT = "What is shown", "Output"


class ReportSettings(Settings):
    """What is computed from logs."""

    radii: Annotated[
        Radii, Option("Radii of the table.", metavar="R,R,...", default="0, 0.25, ... as far as any radius goes")
    ] = ()
    what_if: Annotated[
        tuple[str, ...],
        Option(
            "Add the same run at another alpha=A or n=N (larger: a projection), or under an older bound=lecuyer2019 "
            "or bound=li2018. Repeatable.",
            metavar="NAME=VALUE", panel=SHOWN, repeated=True,
        ),
    ] = ()  # fmt: skip
    against: Annotated[
        tuple[str, ...],
        Option(
            "Add published rows of the same dataset and sigma: cohen2019, crt2022, all.",
            metavar="PAPER", panel=SHOWN, repeated=True,
        ),
    ] = ()  # fmt: skip
    rho: Annotated[
        Annotated[float, Field(gt=0, lt=1)],
        Option("Probability of failure of the bounds of --show bounds and lcb@R.", panel=SHOWN),
    ] = 0.001
    common_idx: Annotated[bool, Option("Compare only the images that all logs hold.", panel=SHOWN)] = False


class ReportOutput(Settings):
    """What of a report is shown, held against requirements, and written."""

    show: Annotated[
        tuple[str, ...],
        Option(
            "More tables: measures; bounds (appendix D of Cohen et al.); classes; envelope (best of several sigmas); "
            "compare (each log with the first); estimate (a large n for all images, from a log of all at a small n and "
            "one of some at a large n); images (not certified, or flipping); those that other packages add; all. "
            "Repeatable.",
            metavar="TABLE", repeated=True,
        ),
    ] = ()  # fmt: skip
    plot: Annotated[
        tuple[str, ...],
        Option(
            "Draw curve, envelope, ecdf, samples, alpha, bounds, attacks, learning, or what other packages add, to a "
            ".png, .svg or .pdf file. Repeatable.",
            metavar="KIND[=FILE]", repeated=True,
        ),
    ] = ()  # fmt: skip
    out: Annotated[
        Path | None,
        Option("Write DIR/index.html, a page of everything that needs no network.", metavar="DIR"),
    ] = None
    require: Annotated[
        tuple[str, ...],
        Option(
            "Exit with 3 unless every log meets it: acc@R, lcb@R, acr, abstain or clean, as in 'acc@0.5>=0.6'. "
            "Repeatable.",
            metavar="TEST", repeated=True,
        ),
    ] = ()  # fmt: skip
    format: Annotated[
        Format, Option("How tables are written: rich, markdown, latex, csv, json or html.", panel=OUTPUT)
    ] = "rich"
    intervals: Annotated[bool, Option("Add 95 % intervals over images.", panel=SHOWN)] = False
    cost: Annotated[
        bool,
        Option(
            "Report what training cost instead: time and passes per epoch, totals, what transfer saved.", panel=SHOWN
        ),
    ] = False
    baseline: Annotated[
        Path | None,
        Option(
            "With --cost: the directly trained run to compare with.",
            metavar="RUN", default="the first without a teacher", panel=SHOWN,
        ),
    ] = None  # fmt: skip
    dataset: Annotated[
        str | None, Option("Of logs that name none: their dataset, for pictures on the page.", panel=SHOWN)
    ] = None
    split: Annotated[str | None, Option("With --dataset: its split.", default="test", panel=SHOWN)] = None
    data: Annotated[
        Path | None,
        Option("Where the dataset's files are, for pictures on the page.", metavar="PATH", panel=SHOWN),
    ] = None
    strict: Annotated[bool, Option("Exit with 1 if there is anything to warn of.", panel=OUTPUT)] = False
