"""Settings that are inferred from radii: never wrongly, "unknown" where they do not tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smoothctl.reporting.measures import detection
from smoothctl.reporting.reader import read_frame
from tests.benchmarks.detection import fragments, wrong
from tests.reporting.make import radius_frame


def test_fragments_of_published_logs_are_never_given_wrong_settings(shared: Path):
    """The whole run (tests/benchmarks/detection.py) draws thousands a log."""
    stated = mistaken = 0
    for path in sorted((shared / "data" / "logs").glob("*.tsv")):
        if path.stat().st_size < 300 or "predict" in path.name:
            continue
        frame = read_frame(path)
        truth = detection.detect(frame)[0]
        truth = replace(truth, settings={"n": 100_000, **truth.settings})
        outcomes = [outcome for part in fragments(frame, 40) if (outcome := wrong(part, truth)) is not None]
        stated, mistaken = stated + len(outcomes), mistaken + sum(outcomes)
    assert stated >= 20
    assert mistaken == 0


@pytest.mark.parametrize("n", detection.SAMPLES)
@pytest.mark.parametrize("alpha", detection.ALPHAS)
@pytest.mark.parametrize("digits", [3, None])
def test_simulated_logs_are_never_given_wrong_settings(n: int, alpha: float, digits: int | None):
    """Fragments of logs made with known settings, with and without a row at the cap."""
    random = np.random.default_rng(n)
    grid = detection.attainable(n, alpha)
    for _ in range(40):
        count = int(random.integers(3, 60))
        places = (len(grid) - 1) * random.uniform(0, random.choice([0.8, 1.0]), count)
        radius = [float(f"{value:.{digits}}") if digits else float(value) for value in 0.25 * grid[places.astype(int)]]
        frame = radius_frame(radius, [1] * count, [1] * count, settings={"sigma": 0.25})
        if not detection.needs_detection(frame):
            continue
        found, text = detection.detect(frame)
        assert (found.settings.get("n", n), found.settings.get("alpha", alpha)) == (n, alpha), text


def test_too_little_evidence_is_unknown(shared: Path):
    for name in ("b_sigma_1.00.tsv", "sigma_0.50.tsv"):
        frame = read_frame(shared / "cases" / "logs" / name)
        found, text = detection.detect(frame)
        assert found.alpha is None
        assert "n=100000" in text


def test_many_samples_stay_possible_where_no_radius_is_near_the_cap():
    few = radius_frame([0.665, 0.811, 0.915], [1, 1, 1], [1, 1, 1], settings={"sigma": 1.0})
    assert {fit.n for fit in detection.try_fits(few, 1.0) if fit.possible} >= {100_000}
    assert detection.detect(few)[0].alpha is None
