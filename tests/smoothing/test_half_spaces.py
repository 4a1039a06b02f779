"""Linear networks, whose smoothed classifiers and radii are known: false radii are as rare as alpha says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from smoothctl import certify
from smoothctl.images.datasets import EIGHT_BIT

ALPHA, SIGMA, IMAGES = 0.1, 0.5, 400
RULES = [{}, {"radii": (0.2, 0.4)}, {"radii": (0.4,)}, {"budget": "draft"}, {"bound": "multi"}]


class HalfSpaces(nn.Module):
    """Class 1 where the pixels' mean is above a half, else class 0; a third class never."""

    def forward(self, x: Tensor) -> Tensor:
        score = (x.flatten(1) - 0.5).sum(dim=1) / x[0].numel() ** 0.5
        return torch.stack([-score, score, torch.full_like(score, -100.0)], dim=1)


def images_at(distance: float, on_grid: bool) -> tuple[Tensor, np.ndarray]:
    """Images [N,1,4,4] about so far within class 1, and how far exactly: the radius of the smoothed classifier
    (Cohen et al. 2019, appendix B)."""
    draws = np.random.default_rng(0)
    x = 0.5 + distance / 4 + draws.uniform(-0.1, 0.1, (IMAGES, 1, 4, 4))
    x -= x.mean(axis=(1, 2, 3), keepdims=True) - (0.5 + distance / 4)
    if on_grid:
        x = np.round(x * EIGHT_BIT) / EIGHT_BIT
    kept = torch.from_numpy(x).float()
    return kept, (kept.double().numpy().reshape(IMAGES, 16) - 0.5).sum(axis=1) / 4


@pytest.mark.parametrize("on_grid", [True, False], ids=["exact", "float"])
@pytest.mark.parametrize("options", RULES, ids=str)
def test_false_radii_are_within_the_binomial_range(options: dict[str, Any], on_grid: bool) -> None:
    """At distances just short of what is asked, where a rule is wrong most often."""
    x, true = images_at(0.399, on_grid)
    found = certify(HalfSpaces(), x, sigma=SIGMA, n0=20, n=200, alpha=ALPHA, **options)
    reached = np.array([item.radius if item.predict == 1 else 0.0 for item in found])
    wrong = int(np.sum(reached > true) + sum(item.predict not in (1, -1) for item in found))
    assert wrong <= stats.binom.ppf(0.9999, IMAGES, ALPHA)
    assert wrong >= stats.binom.ppf(0.0001, IMAGES, ALPHA / 2)  # these bounds are nearly exact, so some must be wrong
