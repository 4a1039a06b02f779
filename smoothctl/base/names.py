"""Names that were mistyped, and those that were meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names most like one that is not known, best first; capitals do not matter."""
    by_folded = {each.lower(): each for each in known}
    return [by_folded[each] for each in difflib.get_close_matches(name.lower(), by_folded, n=count, cutoff=0.5)]


def did_you_mean(name: str, known: Iterable[str], count: int = 3) -> str:
    """A question, ``Did you mean A or B?``; empty if nothing is like the name."""
    close = closest(name, known, count)
    return f"Did you mean {' or '.join(close)}?" if close else ""
