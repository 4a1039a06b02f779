"""Exact arithmetic: integers with computed probabilities, and certificates that hold for what was evaluated."""

from __future__ import annotations

import dataclasses

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from smoothctl import Draws, certify, predict
from smoothctl.base.errors import SmoothctlError
from smoothctl.base.thresholds import Thresholds
from smoothctl.hooks.registry import registry
from smoothctl.smoothing.arithmetic import Arithmetic, arithmetic_for, grid_law, is_on_grid, proving

GAUSSIAN = registry().find("noise", "gaussian").value
SIGMA = 0.5


class Comparison(nn.Module):
    """Class 1 iff (v - a) + a == v in float32, v the only pixel: true for nearly every float sum near a."""

    def __init__(self, a: float):
        super().__init__()
        self.a = torch.tensor(a, dtype=torch.float32)

    def forward(self, x: Tensor) -> Tensor:
        v = x[:, 0, 0, 0]
        same = ((v - self.a) + self.a == v).float()
        return torch.stack([1 - same, same], dim=1)


def exact_probability(network: nn.Module, pixel: int) -> float:
    """P(class 1) at pixel / 255, summed over the law of the integers that are added."""
    law = grid_law(GAUSSIAN, SIGMA, 255)
    assert law is not None
    reached = np.concatenate([[0], law.values.astype(np.float64), [2.0**64]]) / 2.0**64
    j = torch.arange(law.lowest, law.lowest + len(law) + 1)
    x = (pixel + j).float().div(255).view(-1, 1, 1, 1)
    return float(np.diff(reached)[network(x).argmax(1).numpy() == 1].sum())


@pytest.mark.parametrize(
    ("pixel", "p", "distance"), [(200, 0.8371, 0.549), (250, 0.8418, 0.522), (128, 0.6960, 0.306), (64, 0.6853, None)]
)
def test_float_networks_have_their_probability_and_are_not_certified_beyond_the_distance(
    pixel: int, p: float, distance: float | None
) -> None:
    network = Comparison(pixel / 255)
    assert exact_probability(network, pixel) == pytest.approx(p, abs=5e-5)
    others = [other for other in range(256) if exact_probability(network, other) < 0.5]
    nearest = min((abs(other - pixel) / 255 for other in others), default=None)
    assert nearest == (None if distance is None else pytest.approx(distance, abs=5e-4))
    image = torch.full((1, 1, 1, 1), pixel / 255)
    (certificate,) = certify(network, image, sigma=SIGMA, n=100_000, batch_size=10_000)
    assert certificate.arithmetic == "exact, grid 1/255"
    assert certificate.votes[1] / 100_000 == pytest.approx(p, abs=0.005)
    assert 0 < certificate.radius <= SIGMA * stats.norm.ppf(p)
    assert nearest is None or certificate.radius < nearest


def test_an_image_on_no_grid_is_certified_in_floating_point_and_says_so() -> None:
    images = torch.tensor([0.9, 0.8]).view(2, 1, 1, 1)
    off, on = certify(Comparison(0.9), images, sigma=SIGMA, n=200)
    assert (off.arithmetic, on.arithmetic) == ("float", "exact, grid 1/255")
    assert [item.arithmetic for item in predict(Comparison(0.9), images, sigma=SIGMA)] == [
        "float", "exact, grid 1/255",
    ]  # fmt: skip


@pytest.mark.parametrize(("sigma", "levels"), [(0.12, 255), (0.25, 240), (1.0, 255)])
def test_the_law_is_that_of_the_rounded_noise(sigma: float, levels: int) -> None:
    law = grid_law(GAUSSIAN, sigma, levels)
    assert law is not None
    edges = (law.lowest + np.arange(len(law)) + 0.5) / levels
    np.testing.assert_allclose(
        law.values.astype(np.float64) / 2.0**64, stats.norm.cdf(edges / sigma), rtol=0, atol=1e-15
    )
    with mpmath.workprec(200):
        for place in range(0, len(law), 97):
            exact = 2**64 * mpmath.ncdf(mpmath.mpf(2 * (law.lowest + place) + 1) / (2 * levels) / mpmath.mpf(sigma))
            assert abs(exact - int(law.values[place])) <= 0.5 + 2.0**-20
    distance = Arithmetic(GAUSSIAN, sigma, levels).distance(3 * 32 * 32)
    assert 0 < distance < 1e-12


def test_draws_follow_the_thresholds_by_table_and_by_search() -> None:
    law = grid_law(GAUSSIAN, 1.0, 255)
    assert law is not None
    words = np.random.default_rng(0).integers(0, 2**64, 200_000, np.uint64)
    words[:3] = 0, 2**64 - 1, law.values[7]
    expected = np.searchsorted(law.values, words, side="right") + law.lowest
    signed = torch.from_numpy((words ^ np.uint64(2**63)).view(np.int64))
    np.testing.assert_array_equal(law.search(signed).numpy(), expected)
    count = 40_000
    stream = iter([words[: count // 4], words[count:]])
    taken: list[np.ndarray] = []

    def random_words(size: int) -> np.ndarray:
        taken.append(next(stream)[:size])
        return taken[-1]

    drawn = law.draw(count, random_words)
    short = taken[0].view(np.uint16)
    outcomes, _, _ = law._tables
    decided = outcomes[short] != law._undecided
    np.testing.assert_array_equal(drawn[decided], outcomes[short][decided])
    rest = (short[~decided].astype(np.uint64) << np.uint64(48)) | (taken[1] >> np.uint64(16))
    np.testing.assert_array_equal(drawn[~decided], np.searchsorted(law.values, rest, side="right") + law.lowest)
    # What the table decides agrees with a search for the least and the largest word of its bucket.
    for low in (0, 2**48 - 1):
        whole = (short[decided].astype(np.uint64) << np.uint64(48)) | np.uint64(low)
        np.testing.assert_array_equal(drawn[decided], np.searchsorted(law.values, whole, side="right") + law.lowest)


def test_drawn_noise_has_its_law() -> None:
    exact = Arithmetic(GAUSSIAN, 0.25, 255)
    drawn = exact.sample((200_000,), Draws(0, 1)).numpy()
    assert drawn.dtype == np.int16
    law = exact.law
    assert law is not None
    places = law.lowest + np.arange(len(law))
    empirical = np.searchsorted(np.sort(drawn), places, side="right") / len(drawn)
    assert np.abs(empirical - law.values.astype(np.float64) / 2.0**64).max() < 1.95 / np.sqrt(len(drawn))


def test_equal_sums_give_equal_inputs() -> None:
    exact = Arithmetic(GAUSSIAN, 0.25, 255)
    pixels = torch.arange(256).float().div(255).view(256, 1, 1)
    held = exact.hold(pixels)
    out = torch.empty(256, 1, 1)
    exact.add(held, (100 - held).to(torch.int16), out)
    assert (out == torch.tensor(100.0) / 255).all()
    exact.add(held, torch.zeros(256, 1, 1, dtype=torch.int16), out)
    assert torch.equal(out, pixels)


@pytest.mark.parametrize("made", [lambda i: i.float() / 255, lambda i: (i.double() / 255).float()])
def test_8_bit_pixels_are_recognised_however_they_were_divided(made: object) -> None:
    assert is_on_grid(made(torch.arange(256)), 255)  # type: ignore[operator]
    assert not is_on_grid(torch.tensor([0.5]), 255)
    assert is_on_grid(torch.arange(17) / 16, 240)


def test_an_image_off_the_grid_of_its_dataset_is_refused() -> None:
    with pytest.raises(SmoothctlError, match="image 3 has pixels that are no multiples of 1/255"):
        Arithmetic(GAUSSIAN, 0.25, 255).hold(torch.tensor([0.5]), "image 3")


def test_noise_without_a_law_and_laws_too_fine_get_floating_point() -> None:
    assert arithmetic_for(dataclasses.replace(GAUSSIAN, cdf=None), 0.25, 255).name == "float"
    assert arithmetic_for(GAUSSIAN, 10.0, 65_535).name == "float"
    assert arithmetic_for(GAUSSIAN, 0.25, None).name == "float"


def test_a_wide_law_is_drawn_in_32_bits() -> None:
    uniform = dataclasses.replace(GAUSSIAN, cdf=lambda x, sigma: min(1, max(0, (x / sigma + 1) / 2)))
    exact = Arithmetic(uniform, 150.0, 255)
    drawn = exact.sample((10_000,), Draws(0, 1))
    assert drawn.dtype == torch.int32
    assert float(drawn.double().std()) == pytest.approx(150 * 255 / np.sqrt(3), rel=0.05)


def test_proven_radii_are_below_the_exact_ones_and_close() -> None:
    proven = proving(GAUSSIAN, 1e-12)
    with mpmath.workprec(120):
        for p in (0.5 + 2e-12, 0.500001, 0.6, 0.84, 0.9999, 1 - 1e-9):
            radius = proven.radius(p, SIGMA)
            assert mpmath.ncdf(mpmath.mpf(radius) / SIGMA) <= mpmath.mpf(p) - mpmath.mpf(1e-12)
            assert radius == pytest.approx(GAUSSIAN.radius(p, SIGMA), rel=1e-3 if p > 1 - 1e-6 else 1e-7, abs=1e-11)
    assert proven.radius(0.5 + 1e-13, SIGMA) < 0
    assert proven.radius_pair(0.4, 0.4 - 1e-13, SIGMA) < 0
    assert 0 < proven.radius_pair(0.4, 0.2, SIGMA) < GAUSSIAN.radius_pair(0.4, 0.2, SIGMA)


def test_thresholds_that_fall_are_refused() -> None:
    with pytest.raises(ValueError, match="rise"):
        Thresholds(0, [5, 3])
