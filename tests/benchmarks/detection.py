"""How often the settings that are inferred for a fragment of a published log are wrong.

    python tests/benchmarks/detection.py LOG... [--fragments N]

Draws fragments of 3 to 100 rows, adjacent and scattered, with and without rows at the largest radius, with the sigma of
the file's name and without, and compares what is stated with what the whole log says.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import detection
from smoothctl.reporting.reader import read_frame


def fragments(frame: Frame, count: int, seed: int = 0) -> Iterator[Frame]:
    """``count`` fragments: of one place or scattered, half without the rows of the largest radii, half nameless."""
    random = np.random.default_rng(seed)
    largest = frame.radius.max()
    low = np.flatnonzero(frame.radius < 0.9 * largest)
    for at in range(count):
        rows = low if at % 2 else np.arange(len(frame))
        size = min(len(rows), int(np.exp(random.uniform(np.log(3), np.log(101)))))
        if at % 3:
            start = random.integers(0, len(rows) - size + 1)
            chosen = rows[start : start + size]
        else:
            chosen = np.sort(random.choice(rows, size, replace=False))
        part = frame.take(np.isin(np.arange(len(frame)), chosen))
        if at % 4 >= 2:
            settings = {key: value for key, value in part.settings.items() if key != "sigma"}
            part = replace(part, settings=settings, guessed=frozenset())
        yield part


def wrong(part: Frame, truth: Frame) -> bool | None:
    """Whether what is inferred contradicts the whole log; None if nothing is."""
    if not detection.needs_detection(part):
        return None
    found, _ = detection.detect(part)
    if found.alpha is None:
        return None
    pairs = [(found.settings.get(key), truth.settings.get(key)) for key in ("sigma", "n", "alpha")]
    return any(known is not None and stated != known for stated, known in pairs)


def main() -> None:
    """Print a line for each log, and the share of all fragments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--fragments", type=int, default=1000)
    options = parser.parse_args()
    total = mistaken = 0
    for path in options.logs:
        frame = read_frame(path)
        if frame.kind != "certify" or len(frame) < 100:
            continue
        truth = detection.detect(frame)[0]
        # Every published log of the field has this n; a log that leaves alpha open is held against n alone.
        truth = replace(truth, settings={"n": 100_000, **truth.settings})
        outcomes = [wrong(part, truth) for part in fragments(frame, options.fragments)]
        stated = [outcome for outcome in outcomes if outcome is not None]
        total, mistaken = total + len(outcomes), mistaken + sum(stated)
        print(f"{path.name}: {len(outcomes)} fragments, {len(stated)} stated, {sum(stated)} wrong", flush=True)
    print(f"all: {mistaken} of {total} fragments wrong ({1000 * mistaken / max(1, total):.2f} in 1,000)")


if __name__ == "__main__":
    main()
