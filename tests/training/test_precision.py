"""Which precision --precision auto takes, and that the slow ones cost little."""

from __future__ import annotations

import pytest
import torch

from smoothctl.models.classifier import build_classifier
from smoothctl.training import precision
from smoothctl.training.precision import fastest, step_seconds


def test_fp32_stays_unless_another_saves_a_twentieth():
    assert fastest({"fp32": 1.0, "bf16": 0.96}) == "fp32"
    assert fastest({"fp32": 1.0, "bf16": 0.9}) == "bf16"
    assert fastest({"fp32": 1.0, "tf32": 0.5, "bf16": 0.4}) == "bf16"
    assert fastest({"fp32": 1.0}) == "fp32"


def test_a_precision_that_is_hopeless_at_first_is_not_tried_again(monkeypatch: pytest.MonkeyPatch):
    tried: list[str] = []
    real = precision._seconds

    def slow(network, name, x):
        tried.append(name)
        return real(network, name, x) + (60 if name == "bf16" else 0)

    monkeypatch.setattr(precision, "_seconds", slow)
    model = build_classifier("lenet", 10, (1, 8, 8))
    found = step_seconds(model, (1, 8, 8), torch.device("cpu"), 4)
    assert tried == ["fp32", "bf16", "fp32", "fp32", "fp32"]
    assert found["fp32"] < 60 < found["bf16"]
