"""A large n estimated for all images: how close it comes, what its intervals cover, and when there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smoothctl.base.errors import SmoothctlError
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.measures import metrics, whatif
from smoothctl.reporting.measures.estimate import estimate, estimates, post_stratified, regression
from smoothctl.reporting.reader import read_frame
from smoothctl.reporting.sources import detected
from tests.reporting.make import certified_frame

RADII = (0.0, 0.5, 1.0)
IMAGES, MEASURED = 3000, 300
PUBLISHED = (
    "consistency_cifar10_resnet110_noise_0.25", "consistency_cifar10_resnet110_noise_0.50",
    "mnist_lenet_gaussian_noise_0.50_run1",
)  # fmt: skip


@pytest.fixture(scope="module")
def population() -> tuple[Frame, Frame]:
    """One model's images at n = 1,000 and at n = 100,000."""
    random = np.random.default_rng(0)
    rate = np.concatenate([random.beta(6, 1, IMAGES // 2), 1 - random.exponential(0.002, IMAGES // 2).clip(max=1)])
    frames = []
    for n in (1_000, 100_000):
        votes = random.binomial(n, rate)
        frames.append(certified_frame([[n - k, k] for k in votes.tolist()], [1] * IMAGES, name=f"n{n}"))
    return frames[0], frames[1]


def some(frame: Frame, count: int, seed: int) -> Frame:
    mask = np.zeros(len(frame), bool)
    mask[np.random.default_rng(seed).choice(len(frame), count, replace=False)] = True
    return frame.take(mask)


def test_intervals_cover_the_full_log_and_are_far_narrower_than_its_part_alone(population: tuple[Frame, Frame]):
    cheap, full = population
    truth = [*metrics.certified_accuracy(full, RADII), metrics.average_certified_radius(full)]
    covered, errors, alone = [], [], []
    for seed in range(200):
        part = some(full, MEASURED, seed)
        found = estimate(cheap, part, RADII)
        assert found.acr is not None
        figures = [*found.certified, found.acr]
        covered.append([each.low <= true <= each.high for each, true in zip(figures, truth, strict=True)])
        errors.append([each.value - true for each, true in zip(figures, truth, strict=True)])
        alone.append(np.subtract([*metrics.certified_accuracy(part, RADII), part.proved.clip(0).mean()], truth))
    assert (np.mean(covered, axis=0) > 0.91).all()
    gain = np.std(alone, axis=0) / np.sqrt(np.mean(np.square(errors), axis=0))
    assert gain[-1] > 3
    assert gain[1] > 2
    assert (gain > 1).all()
    assert abs(np.mean(errors, axis=0)[-1]) < 0.002


def test_a_control_that_says_nothing_gives_the_sample_itself():
    random = np.random.default_rng(1)
    values, places = random.normal(size=50), np.arange(50)
    found = regression(values, np.zeros((1000, 2)), places)
    assert found.value == pytest.approx(values.mean())
    half = 2.0096 * values.std(ddof=1) / np.sqrt(50) * np.sqrt(1 - 50 / 1000)
    assert found.high - found.value == pytest.approx(half, rel=1e-3)


def test_no_disagreement_among_few_images_is_not_taken_for_none():
    control = np.arange(1000) < 600
    places = np.arange(0, 1000, 20)
    found = post_stratified(control[places], control, places)
    assert found.value == pytest.approx(0.6)
    assert found.low < 0.57
    assert found.high > 0.63


def test_only_a_part_at_a_larger_n_is_estimated_from(population: tuple[Frame, Frame]):
    cheap, full = population
    part = some(full, MEASURED, 0)
    (found,) = estimates([part, cheap], RADII)
    assert (found.full, found.cheap, found.measured, found.images) == ("n100000", "n1000", MEASURED, IMAGES)
    assert found.saving == pytest.approx(100_100 * IMAGES / (1_100 * IMAGES + 100_100 * MEASURED))
    assert estimates([cheap, full], RADII) == []
    assert estimates([some(cheap, MEASURED, 0), full], RADII) == []
    other = replace(part, settings={**part.settings, "model": "another"})
    assert estimates([other, cheap], RADII) == []
    assert estimates([some(full, 9, 0), cheap], RADII) == []
    with pytest.raises(SmoothctlError, match=r"has one label in .* and another in"):
        estimates([replace(part, label=1 - part.label), cheap], RADII)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_sixteenth_of_the_samples_comes_within_half_a_percent_of_a_published_acr(shared: Path, name: str):
    (whole,), _ = detected([read_frame(shared / "data" / "logs" / f"{name}.tsv")])
    truth = metrics.average_certified_radius(whole)
    assert truth is not None
    errors = []
    for seed in range(12):
        cheap = replace(whatif.thinned(whole, 1_250, seed), note="")
        found = estimate(cheap, some(whole, 500, seed), ())
        assert found.acr is not None
        errors.append(found.acr.value / truth - 1)
    assert np.sqrt(np.mean(np.square(errors))) < 0.005
