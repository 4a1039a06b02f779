"""Where a dataset's files are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from smoothctl.base.settings import Option, Settings


class DataSource(Settings):
    """A dataset's files, and whether they may be fetched."""

    data: Annotated[
        Path | None, Option("Where the dataset's files are: a folder, or an .npz file of arrays.", metavar="PATH")
    ] = None
    download: Annotated[bool, Option("Fetch the dataset's files if they are missing.", panel="Images")] = False
