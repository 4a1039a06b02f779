"""Logs that others published: their tables to the last digit, their alpha, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import pytest

from smoothctl.base.errors import SmoothctlError
from smoothctl.reporting.measures import detection, metrics, resolution
from smoothctl.reporting.reader import read_frame

CIFAR = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25)
IMAGENET = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
# ruff: noqa: E501
# Recomputed from the published logs: images, accuracies (%), ACR, abstention (%), largest radius, s/image.
TABLES = {
    "cohen_cifar10_resnet110_noise_0.12_sigma_0.12": (500, "81.40 58.60 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00", "0.2701", "3.80", 0.457, "14.1"),
    "cohen_cifar10_resnet110_noise_0.25_sigma_0.25": (500, "74.80 60.00 42.80 26.60 0.00 0.00 0.00 0.00 0.00 0.00", "0.4289", "8.60", 0.978, "16.9"),
    "cohen_cifar10_resnet110_noise_0.25_sigma_0.50": (500, "33.40 26.00 16.80 10.40 5.00 1.60 0.40 0.00 0.00 0.00", "0.1906", "28.40", 1.62, "14.4"),
    "cohen_cifar10_resnet110_noise_0.50_sigma_0.50": (500, "65.20 54.60 41.40 32.00 23.40 15.20 9.40 5.20 0.00 0.00", "0.5375", "16.60", 1.96, "17.3"),
    "cohen_cifar10_resnet110_noise_1.00_sigma_1.00": (500, "47.20 39.20 34.00 27.80 21.60 17.40 14.00 11.80 10.00 7.60", "0.5417", "29.00", 3.56, "16.2"),
    "cohen_imagenet_resnet50_noise_0.25_sigma_0.25": (427, "66.74 58.08 49.41 37.47 0.00 0.00 0.00 0.00 0.00 0.00", "0.4765", "8.90", 0.978, "150.2"),
    "cohen_imagenet_resnet50_noise_0.50_sigma_0.50": (500, "57.20 51.80 45.80 42.40 37.20 28.60 0.00 0.00 0.00 0.00", "0.7325", "16.40", 1.96, "151.5"),
    "cohen_imagenet_resnet50_noise_1.00_sigma_1.00": (500, "43.60 40.60 37.80 35.40 32.60 26.00 19.40 14.80 12.20 9.00", "0.8752", "29.60", 3.91, "151.7"),
    "consistency_cifar10_resnet110_noise_0.25": (10000, "75.84 67.63 58.13 46.74 0.00 0.00 0.00 0.00 0.00 0.00", "0.5519", "2.79", 0.953, "16.5"),
    "consistency_cifar10_resnet110_noise_0.50": (10000, "64.34 57.49 50.61 43.16 36.17 29.47 22.84 16.05 0.00 0.00", "0.7195", "6.88", 1.91, "15.7"),
}  # fmt: skip
# Which alpha the attainable grid leaves, with the radii above 2.5 sigma that lie on it.
ALPHAS = {
    "cohen_cifar10_resnet110_noise_0.12_sigma_0.12": (0.001, 259, 259, 75),
    "cohen_cifar10_resnet110_noise_0.25_sigma_0.25": (0.01, 181, 74, 181),
    "cohen_cifar10_resnet110_noise_0.50_sigma_0.50": (0.01, 76, 62, 76),
    "cohen_cifar10_resnet110_noise_1.00_sigma_1.00": (0.01, 24, 23, 24),
    "cohen_cifar10_resnet110_noise_0.25_sigma_0.50": (None, 8, 8, 8),
    "cohen_imagenet_resnet50_noise_0.25_sigma_0.25": (0.01, 210, 55, 210),
    "cohen_imagenet_resnet50_noise_0.50_sigma_0.50": (0.01, 183, 88, 183),
    "cohen_imagenet_resnet50_noise_1.00_sigma_1.00": (0.01, 85, 38, 85),
    "consistency_cifar10_resnet110_noise_0.25": (0.001, 5673, 5673, 1412),
    "consistency_cifar10_resnet110_noise_0.50": (0.001, 3179, 3179, 2995),
    "mnist_lenet_gaussian_noise_0.50_run1": (0.001, 8149, 8149, 7571),
    "mnist_lenet_gaussian_noise_0.50_run2": (0.001, 8177, 8177, 7591),
}


@pytest.mark.parametrize("name", TABLES)
def test_published_logs_give_their_tables_to_the_last_digit(shared: Path, name: str):
    images, accuracies, acr, abstain, largest, seconds = TABLES[name]
    frame = read_frame(shared / "data" / "logs" / f"{name}.tsv")
    radii = IMAGENET if "imagenet" in name else CIFAR
    assert len(frame) == images
    assert " ".join(f"{100 * share:.2f}" for share in metrics.certified_accuracy(frame, radii)) == accuracies
    assert f"{metrics.average_certified_radius(frame):.4f}" == acr
    assert f"{100 * frame.abstained.mean():.2f}" == abstain
    assert frame.radius.max() == largest
    assert f"{frame.seconds.mean():.1f}" == seconds


@pytest.mark.parametrize("name", ALPHAS)
def test_alpha_is_told_from_the_radii(shared: Path, name: str):
    alpha, telling, at_001, at_01 = ALPHAS[name]
    frame = read_frame(shared / "data" / "logs" / f"{name}.tsv")
    found = {fit.alpha: fit for fit in detection.try_fits(frame, frame.sigma) if fit.n == 100_000}
    assert {fit.radii for fit in found.values()} == {telling}
    assert (found[0.001].attainable, found[0.01].attainable) == (at_001, at_01)
    detected, text = detection.detect(frame)
    assert detected.alpha == alpha
    assert detected.settings.get("n") == (None if alpha is None else 100_000)
    assert ("undecided" in text) == (alpha is None)


def test_a_log_with_few_copies_is_told_from_one_with_many():
    from tests.reporting.make import radius_frame

    for n, alpha in ((100, 0.001), (1000, 0.01), (10_000, 0.001)):
        radii = [float(f"{value:.3}") for value in 0.25 * detection.attainable(n, alpha)[1::7]]
        frame = radius_frame(radii, [1] * len(radii), [1] * len(radii), settings={"sigma": 0.25})
        found, _ = detection.detect(frame)
        assert (found.settings["n"], found.alpha) == (n, alpha)
        assert found.guessed == {"n", "alpha"}


@pytest.mark.parametrize(
    ("name", "line"),
    [("header_only", "no rows, only a header")],
)
def test_logs_without_rows_are_named(shared: Path, name: str, line: str):
    with pytest.raises(SmoothctlError, match=line):
        read_frame(shared / "data" / "logs" / f"{name}.tsv")


def test_logs_as_people_leave_them(shared: Path):
    logs = shared / "data" / "logs"
    fragment = read_frame(logs / "fragment_9_rows.tsv")
    assert (len(fragment), metrics.subset(fragment.idx.tolist())) == (9, "0..8 step 1")
    assert "undecided" in detection.detect(fragment)[1]
    crlf = read_frame(logs / "crlf.tsv")
    assert (len(crlf), metrics.subset(crlf.idx.tolist())) == (250, "5000..9980 step 20")
    assert crlf.seconds.mean() > 20
    assert detection.detect(crlf)[0].settings == {"sigma": 0.25, "n": 100_000, "alpha": 0.001}
    for n in (100, 1000, 10_000, 100_000):
        assert read_frame(logs / f"cohen_predict_imagenet_noise_0.25_N_{n}.tsv").kind == "predict"


def test_rows_printed_at_a_radius_are_undecided(shared: Path):
    frame = read_frame(shared / "data" / "logs" / "consistency_cifar10_resnet110_noise_0.50.tsv")
    text = (shared / "data" / "logs" / "consistency_cifar10_resnet110_noise_0.50.tsv").read_text()
    ones = sum(line.split("\t")[3:5] == ["1.0", "1"] for line in text.splitlines())
    assert ones == 9
    assert resolution.undecided(frame, [1.0]) == (ones,)
    cut = read_frame(shared / "data" / "logs" / "cohen_imagenet_resnet50_noise_0.25_sigma_0.25.tsv")
    assert metrics.subset(cut.idx.tolist()) == "0..42600 step 100"
