"""``timm/NAME`` is timm's, and says so where it is not."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import pytest
import timm
from torch import nn

from smoothctl import build_classifier


@pytest.fixture
def registered_by_another() -> Iterator[str]:
    """A network that a package of its own registers with timm, under a name that timm does not have."""
    module = types.ModuleType("somebody_elses")
    module.__all__ = []  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module

    def tiny_of_somebody(pretrained: bool = False, num_classes: int = 10, in_chans: int = 3, **_: object) -> nn.Module:
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(in_chans, num_classes))

    tiny_of_somebody.__module__ = module.__name__
    timm.models.register_model(tiny_of_somebody)
    yield tiny_of_somebody.__name__
    del sys.modules[module.__name__]


def test_networks_that_others_registered_with_timm_are_named(
    registered_by_another: str, capsys: pytest.CaptureFixture[str]
) -> None:
    build_classifier(f"timm/{registered_by_another}", 10, (3, 8, 8))
    said = "timm/tiny_of_somebody is not timm's own: somebody_elses registered it there"
    assert capsys.readouterr().err.count(said) == 1
    build_classifier("timm/resnet10t", 10, (3, 32, 32))
    assert "not timm's own" not in capsys.readouterr().err
