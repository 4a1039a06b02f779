"""Which precision --precision auto takes."""

from __future__ import annotations

import torch

from smoothctl.models.classifier import build_classifier
from smoothctl.training.precision import CANDIDATES, step_seconds


def test_every_precision_of_a_device_is_timed_fp32_first() -> None:
    model = build_classifier("lenet", 10, (1, 8, 8))
    found = step_seconds(model, (1, 8, 8), torch.device("cpu"), 4)
    assert tuple(found) == CANDIDATES["cpu"]
    assert all(0 < each < 60 for each in found.values())
