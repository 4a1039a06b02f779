"""Built-in noises: known radii, the law that they declare, and certificates that are never above the truth."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from smoothctl import UsageError, certify
from smoothctl.hooks.noises import NORMS, Noise, stretch
from smoothctl.hooks.registry import registry
from smoothctl.testing import check_noise

NOISES: dict[str, Noise] = {entry.name: entry.value for entry in registry().all("noise")}

# sigma, p_A, radius: theorem 1 of Cohen et al. 2019, theorem 3 of Teng et al. 2020 at scale sigma / sqrt(2), and the
# row of uniform noise on a cube in table 1 of Yang et al. 2020 at half width sqrt(3) sigma.
KNOWN = [
    ("gaussian", 0.5, 0.8413447460685429, 0.5),
    ("gaussian", 0.25, 0.5, 0.0),
    ("laplace", math.sqrt(2), 1 - math.exp(-1) / 2, 1.0),
    ("laplace", 1.0, 0.75, math.log(2) / math.sqrt(2)),
    ("uniform", 1 / math.sqrt(3), 1.0, 1.0),
    ("uniform", 2 / math.sqrt(3), 0.75, 1.0),
]


@pytest.mark.parametrize(("name", "sigma", "p", "radius"), KNOWN)
def test_radii_equal_known_ones(name: str, sigma: float, p: float, radius: float) -> None:
    assert NOISES[name].radius(p, sigma) == pytest.approx(radius, abs=1e-12)


@pytest.mark.parametrize("name", NOISES)
def test_it_is_what_it_declares(name: str) -> None:
    check_noise(NOISES[name])


@pytest.mark.parametrize("name", ["laplace", "uniform"])
def test_sigma_is_the_standard_deviation(name: str) -> None:
    from smoothctl import Draws

    drawn = NOISES[name].sample((1000, 1, 16, 16), 0.7, Draws(0))
    assert float(drawn.std()) == pytest.approx(0.7, rel=0.02)
    assert float(drawn.mean()) == pytest.approx(0.0, abs=0.01)


class Threshold(nn.Module):
    """Class 1 where the first pixel is above a threshold: the nearest other answer is one coordinate away."""

    def __init__(self, threshold: float):
        super().__init__()
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        above = (x[:, 0, 0, 0] > self.threshold).float()
        return torch.stack([1 - above, above], 1)


@pytest.mark.parametrize("name", ["laplace", "uniform"])
@pytest.mark.parametrize("levels", ["8-bit", "other"])
def test_radii_are_above_the_truth_no_more_often_than_alpha(name: str, levels: str) -> None:
    """The distance in L1 to the threshold is the truth: there g is undecided."""
    pixel, threshold, alpha = (128 / 255 if levels == "8-bit" else 0.5), 0.4, 0.1
    images = torch.full((150, 1, 2, 2), pixel)
    found = certify(Threshold(threshold), images, sigma=0.25, noise=name, n0=10, n=200, alpha=alpha, seed=3)
    assert all(each.arithmetic.startswith("exact") == (levels == "8-bit") for each in found)
    truth = float(images[0, 0, 0, 0]) - threshold
    wrong = sum(each.predict == 1 and each.radius > truth for each in found)
    assert sum(each.predict == 1 for each in found) > 50
    assert wrong <= stats.binom.ppf(0.9999, len(found), alpha)
    largest = max(each.radius for each in found if each.predict == 1)
    assert largest > 0.8 * truth  # and the bound is no idle one


@pytest.mark.parametrize(
    ("norm", "other", "values", "factor"),
    [("l2", "linf", 3072, math.sqrt(3072)), ("l1", "linf", 12, 12.0), ("l1", "l2", 16, 4.0), ("l2", "l1", 9, 1.0)],
)
def test_a_radius_is_divided_by_what_the_norm_can_grow(norm: str, other: str, values: int, factor: float) -> None:
    found = stretch(norm, other, values)
    assert factor <= found <= factor * (1 + 1e-14)
    worst = torch.ones(values, dtype=torch.float64)  # all coordinates alike, or a single one
    one = torch.eye(values, dtype=torch.float64)[0]
    ratios = [float(torch.norm(v, NORMS[norm]) / torch.norm(v, NORMS[other])) for v in (worst, one)]
    assert max(ratios) == pytest.approx(factor)


def test_norms_of_another_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be converted"):
        stretch("l0", "l2", 3)


@pytest.mark.parametrize("rule", [{}, {"radii": [0.01, 0.02]}, {"budget": "draft"}])
def test_converted_radii_are_those_of_the_noise_divided_by_the_same(rule: dict) -> None:
    model, images = Threshold(0.2), torch.full((3, 1, 2, 2), 128 / 255)
    own = certify(model, images, sigma=0.25, n=1000, **({"radii": [0.02, 0.04]} if "radii" in rule else rule))
    converted = certify(model, images, sigma=0.25, n=1000, norm="linf", **rule)
    for one, other in zip(own, converted, strict=True):
        assert one.predict == other.predict
        assert other.radius <= one.radius / 2
        assert other.radius == pytest.approx(one.radius / 2, rel=1e-12)
