"""What can be drawn, and to which files."""

from __future__ import annotations

from pathlib import Path

from smoothctl.base.errors import UsageError

KINDS = ("curve", "envelope", "ecdf", "samples", "alpha", "bounds", "learning")
ENDINGS = (".png", ".svg", ".pdf")


def check(text: str) -> tuple[str, Path]:
    """Read ``KIND=FILE``, ``KIND`` (to KIND.png), or ``FILE`` (a curve); raises UsageError for anything else."""
    kind, equals, name = text.partition("=")
    if not equals:
        kind, name = (text, f"{text}.png") if text in KINDS else ("curve", text)
    if kind not in KINDS:
        raise UsageError(f"--plot {text}: choose one of {', '.join(KINDS)}")
    path = Path(name)
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"--plot {text}: choose a name that ends in {', '.join(ENDINGS)}, or one of {', '.join(KINDS)}"
        )
    return kind, path
