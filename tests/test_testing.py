"""A noise that lies is caught, whatever it lies about; true ones pass."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from smoothctl import Draws, Noise
from smoothctl.hooks.registry import registry
from smoothctl.testing import check_noise

GAUSSIAN: Noise = registry().find("noise", "gaussian").value


def scaled(factor: float) -> Any:
    return lambda shape, sigma, draws: factor * GAUSSIAN.sample(shape, sigma, draws)


def test_a_true_noise_that_states_no_law_passes() -> None:
    check_noise(dataclasses.replace(GAUSSIAN, cdf=None))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sample": scaled(0.1)}, "weaker than radius"),
        ({"sample": scaled(0.94)}, "weaker than radius"),
        ({"sample": scaled(0.97), "cdf": GAUSSIAN.cdf}, "does not follow cdf"),
        ({"norm": "linf"}, "weaker than radius"),
        ({"radius": lambda p, sigma: 1.05 * GAUSSIAN.radius(p, sigma)}, "weaker than radius"),
        ({"sample": lambda shape, sigma, draws: sigma * torch.randn(shape)}, "second time"),
        ({"sample": lambda shape, sigma, draws: sigma * Draws(0).normal(shape)}, "same noise"),
        ({"sample": lambda shape, sigma, draws: GAUSSIAN.sample((1, *shape[1:]), sigma, draws)}, "shape"),
    ],
)
def test_noises_that_lie_are_caught(change: dict[str, Any], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_noise(dataclasses.replace(GAUSSIAN, **{"cdf": None, **change}))


def test_coordinates_that_depend_on_each_other_may_state_no_law_of_one() -> None:
    def shared(shape: tuple[int, ...], sigma: float, draws: Draws) -> Tensor:
        return GAUSSIAN.sample((shape[0], 1, 1, 1), sigma, draws).expand(shape)

    with pytest.raises(AssertionError, match="cdf must be left out"):
        check_noise(dataclasses.replace(GAUSSIAN, sample=shared))
