"""Reading logs for reports: what no certification can have given is refused, with its line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from smoothctl.records.log import read_log
from smoothctl.reporting.frames import Frame, from_log
from smoothctl.reporting.measures import plausibility


def read_frame(path: Path) -> Frame:
    """Read a log; raises SmoothctlError, naming the line, for a file that is none, has no rows, or cannot be true."""
    frame = from_log(read_log(path))
    if frame.kind != "certify":
        return frame
    notices = plausibility.require_possible(frame)
    if "sigma" in frame.guessed and plausibility.beyond_sigma(frame) is not None:
        notices = (*notices, f"the name says sigma {frame.sigma:g}, which its largest radius rules out")
        settings = {key: value for key, value in frame.settings.items() if key != "sigma"}
        frame = replace(frame, settings=settings, guessed=frame.guessed - {"sigma"})
    return replace(frame, notices=(*frame.notices, *notices))
