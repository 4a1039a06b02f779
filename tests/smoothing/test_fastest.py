"""The precision of an evaluation: measured once for a model and a machine, among those that answer alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from smoothctl.base.errors import UsageError
from smoothctl.models.classifier import build_classifier
from smoothctl.smoothing.backends import plain
from smoothctl.smoothing.fastest import measure, remembered

PROBES = torch.rand(8, 1, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_what_answers_alike_is_timed() -> None:
    torch.manual_seed(0)
    model = build_classifier("lenet", 10, (1, 8, 8)).eval()
    assert list(measure(model, plain(model), PROBES)) == ["fp32", "bf16"]


class Counter(nn.Module):
    """Its answer depends on digits that bf16 does not have."""

    def forward(self, x):
        total = x.flatten(1).sum(1) * 1000
        return torch.stack([torch.cos(total * step) for step in range(1, 5)], 1)


def test_a_precision_that_answers_otherwise_is_not_a_choice() -> None:
    assert list(measure(Counter(), plain(Counter()), PROBES)) == ["fp32"]


def test_it_is_measured_once_for_a_model_and_a_kind_of_batch(cache: Path) -> None:
    asked: list[int] = []

    def measuring() -> dict:
        asked.append(1)
        return {"fp32": 2.0, "bf16": 1.0}

    for _ in range(2):
        assert remembered("a" * 64, PROBES, measuring) == {"fp32": 2.0, "bf16": 1.0}
    assert len(asked) == 1
    remembered("b" * 64, PROBES, measuring)
    remembered("a" * 64, PROBES[:4], measuring)
    assert len(asked) == 3
    for kept in cache.rglob("*.json"):
        kept.write_text(json.dumps([1]))
    assert remembered("a" * 64, PROBES, measuring) == {"fp32": 2.0, "bf16": 1.0}
    assert len(asked) == 4


def test_without_a_cache_it_is_measured_each_time_and_several_processes_cannot_agree(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "smoothctl").write_text("a file")
    assert remembered("a" * 64, PROBES, lambda: {"fp32": 1.0}) == {"fp32": 1.0}
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="precision auto: the processes cannot agree"):
        remembered("a" * 64, PROBES, lambda: {"fp32": 1.0})
