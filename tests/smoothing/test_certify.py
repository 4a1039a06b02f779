"""Certificates against what is known exactly."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np
import pytest
import torch
from scipy import stats

from smoothctl import UsageError, certify
from smoothctl.base.streams import Stream
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import Certificate
from smoothctl.smoothing.backends import plain
from smoothctl.smoothing.bounds import clopper_pearson_lower
from smoothctl.smoothing.sampling import Request
from tests.networks import Constant, OutsideBox, Threshold, grey_images
from tests.procedures import begin

GAUSSIAN = registry().find("noise", "gaussian").value


def test_linear_model_is_certified_below_its_true_radius() -> None:
    (certificate,) = certify(Threshold(), grey_images(1, 0.8), sigma=0.5, n=10_000)
    assert certificate.predict == 1
    assert 0.25 < certificate.radius <= 0.3


def test_radius_comes_from_votes_by_the_paper_s_formula() -> None:
    (certificate,) = certify(Threshold(), grey_images(1, 0.8), sigma=0.5, n=10_000)
    p_lower = stats.beta.ppf(0.001, certificate.votes[1], 10_000 - certificate.votes[1] + 1)
    assert certificate.radius == pytest.approx(0.5 * stats.norm.ppf(p_lower), rel=1e-12)


@pytest.mark.parametrize("sigma", [0.12, 0.25, 0.5, 1.0])
def test_constant_model_reaches_the_cap_and_no_more(sigma: float) -> None:
    (certificate,) = certify(Constant(), grey_images(1, 0.8), sigma=sigma, n=100_000, batch_size=5000)
    assert certificate.radius <= sigma * 3.81145656339
    assert certificate.radius == pytest.approx(sigma * 3.81145656339, rel=1e-10)


def test_a_general_linear_model_is_certified_towards_its_distance() -> None:
    generator = torch.Generator().manual_seed(3)
    weight, bias = torch.randn(3 * 8 * 8, generator=generator), 0.4
    images = torch.rand(20, 3, 8, 8, generator=generator)

    class Linear(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = x.flatten(1) @ weight + bias
            return torch.stack([-z, z], dim=1)

    distance = ((images.flatten(1) @ weight + bias).abs() / weight.norm()).numpy()
    certificates = certify(Linear(), images, sigma=0.25, n=20_000, batch_size=2000)
    radii = np.array([item.radius for item in certificates])
    assert np.all(radii <= distance)
    # Selection on 100 samples may miss a class that leads by little, and then abstains.
    clear = distance > 0.1
    assert np.all(radii[clear] >= distance[clear] - 0.05)


def test_selection_and_estimation_use_different_noise() -> None:
    (certificate,) = certify(Threshold(), grey_images(1, 0.5), sigma=0.5, n0=200, n=200)
    assert certificate.selection.sum() == certificate.votes.sum() == 200
    assert tuple(certificate.selection) != tuple(certificate.votes)


def exact_certify_rate(p: float, n0: int, n: int, alpha: float) -> float:
    """P(a class is certified with p_lower above its p) for two classes, by enumeration: class 1 has p."""
    rate = 0.0
    for own, selected in ((p, stats.binom.sf(n0 // 2, n0, p)), (1 - p, stats.binom.cdf(n0 // 2, n0, p))):
        k = np.arange(n + 1)
        bounds = clopper_pearson_lower(k, n, alpha)
        wrong = (bounds >= 0.5) & (bounds > own)
        rate += selected * float(stats.binom.pmf(k, n, own)[wrong].sum())
    return rate


@pytest.mark.parametrize("alpha", [0.001, 0.05])
def test_coverage_by_exact_enumeration(alpha: float) -> None:
    n0, n = 20, 200
    critical = clopper_pearson_lower(np.arange(n // 2, n + 1), n, alpha)
    for p in (0.5, 0.55, *(critical[critical > 0.5] - 1e-9)):
        assert exact_certify_rate(float(p), n0, n, alpha) <= alpha * (1 + 1e-7)


def reusing(n: int, alpha: float) -> Generator[Request, np.ndarray, Certificate]:
    """The mistake: the class is chosen from the very votes that are then bounded."""
    votes = yield Request(Stream.ESTIMATE, n)
    top = int(votes.argmax())
    p_lower = clopper_pearson_lower(votes[top], n, alpha)
    return Certificate(top, top if p_lower >= 0.5 else ABSTAIN, p_lower, 0.0, n, votes, votes, "")


def certified_share(rule: str, alpha: float, count: int = 2000) -> float:
    """Share of images at p_A = 1/2 exactly, where every certificate is wrong."""
    from smoothctl.smoothing.sampling import Sampler

    sampler: Sampler[Certificate] = Sampler(plain(Threshold()), GAUSSIAN, 0.5, 0, torch.device("cpu"), 20_000)
    cohen = begin(GAUSSIAN, 0.5, n0=100, n=100, alpha=alpha)
    rules = {"cohen": lambda index: cohen(-1), "reusing": lambda index: reusing(100, alpha)}
    image = torch.full((1, 1, 1), 0.5)
    decided = sampler.run(((index, image) for index in range(count)), rules[rule])
    return float(np.mean([item.outcome.predict != ABSTAIN for item in decided]))


def test_certificates_are_wrong_no_more_often_than_alpha() -> None:
    alpha = 0.05
    three_errors = 3 * math.sqrt(alpha * (1 - alpha) / 2000)
    assert certified_share("cohen", alpha) <= alpha + three_errors


def test_negative_control_reusing_the_selection_votes_is_caught() -> None:
    alpha = 0.05
    three_errors = 3 * math.sqrt(alpha * (1 - alpha) / 2000)
    assert certified_share("reusing", alpha) > alpha + three_errors


def test_noise_comes_before_resizing() -> None:
    class Upsampled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            large = torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest")
            z = large[:, 0, :2, :2].mean(dim=(1, 2)) - 0.5
            return torch.stack([-z, z], dim=1)

    (certificate,) = certify(Upsampled(), grey_images(1, 0.8), sigma=0.5, n=20_000)
    assert 0.25 < certificate.radius <= 0.3


def test_normalising_is_a_layer_behind_the_noise() -> None:
    from smoothctl.models.classifier import BaseClassifier

    class Centred(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([-x[:, 0, 0, 0], x[:, 0, 0, 0]], dim=1)

    model = BaseClassifier(Centred(), [0.5] * 3, [0.25] * 3)
    (certificate,) = certify(model, grey_images(1, 0.8), sigma=0.5, n=10_000)
    assert 0.25 < certificate.radius <= 0.3


def test_images_outside_the_unit_box_are_refused_with_their_range() -> None:
    with pytest.raises(UsageError, match="0 to 255"):
        certify(Constant(), torch.tensor([0.0, 255.0]).repeat(1, 3, 4, 2)[:, :, :, :4], sigma=0.5)


def test_certificate_belongs_to_the_index_not_to_the_position() -> None:
    images = grey_images(3, 0.6)
    together = certify(Threshold(), images, sigma=0.5, n=500)
    (alone,) = certify(Threshold(), images[2:], sigma=0.5, n=500, indices=[2])
    assert alone.radius == together[2].radius
    assert tuple(alone.votes) == tuple(together[2].votes)


def test_clipping_would_show() -> None:
    (certificate,) = certify(OutsideBox(), torch.full((1, 3, 8, 8), 0.5), sigma=0.5, n=100)
    assert certificate.predict == 1


@pytest.mark.parametrize(
    ("setting", "match"),
    [({"sigma": 0}, "sigma"), ({"alpha": 1.5}, "alpha"), ({"n0": 0}, "n0"), ({"n": 9}, "n>=10")],
)
def test_settings_out_of_range_are_refused(setting: dict, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        certify(Constant(), grey_images(1, 0.5), **{"sigma": 0.5, **setting})
