"""Splitting: what is certain, against all images there are, and the engine that draws nothing."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from smoothctl import Draws, Noise, UsageError, certify, predict
from smoothctl.cli import run
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import EIGHT_BIT
from smoothctl.records.log import read_log
from smoothctl.smoothing.enumeration import certify_all
from smoothctl.smoothing.predict import predict_all

SPLIT: Noise = registry().find("noise", "split").value
LEVELS = 4
SIGMA = 1.0
GRID = [torch.tensor(x).view(1, 1, 2) / LEVELS for x in itertools.product(range(LEVELS + 1), repeat=2)]


def sees(x: Tensor, sigma: float = SIGMA, levels: int = LEVELS) -> Tensor:
    """All that a network sees of an image [C,H,W]."""
    assert SPLIT.values is not None
    count = SPLIT.values.count(sigma, levels)
    part = SPLIT.values.part((count, *x.shape), sigma, levels, 0, Draws(0))
    return SPLIT.values.apply(x, part, sigma, levels)


class Sum(nn.Module):
    """Class 0 where the pixels sum to less than a limit, class 1 from there on, class 2 never."""

    def __init__(self, limit: float):
        super().__init__()
        self.limit = limit

    def forward(self, x: Tensor) -> Tensor:
        total = x.flatten(1).sum(1)
        return torch.stack([(total < self.limit).float(), (total >= self.limit).float(), -torch.ones_like(total)], 1)


def test_a_step_on_the_grid_is_told_apart_by_one_value_at_most() -> None:
    """Levine and Feizi 2021, theorem 3, by comparing all pairs of images of two pixels."""
    told = {}
    for (place, x), (other, y) in itertools.combinations(enumerate(GRID), 2):
        steps = round(float((x - y).abs().sum()) * LEVELS)
        told[place, other] = (int((sees(x) != sees(y)).flatten(1).any(1).sum()), steps)
    assert all(count <= steps for count, steps in told.values())
    assert sum(count == steps for count, steps in told.values()) > len(told) / 2


@pytest.mark.parametrize("limit", [0.6, 0.9, 1.2])
def test_no_image_within_a_radius_has_another_class(limit: float) -> None:
    assert SPLIT.values is not None
    network = Sum(limit)
    votes = [torch.bincount(network(sees(x)).argmax(1), minlength=3).numpy() for x in GRID]
    largest = 0.0
    for x, own in zip(GRID, votes, strict=True):
        second, first = np.sort(own)[-2:]
        if first == second:
            continue
        radius = SPLIT.values.radius(int(first), int(second), SIGMA, LEVELS)
        near = [other for y, other in zip(GRID, votes, strict=True) if float((x - y).abs().sum()) <= radius + 1e-6]
        assert all(other.argmax() == own.argmax() and (other == other.max()).sum() == 1 for other in near)
        largest = max(largest, radius)
    assert largest >= 2 / LEVELS


def test_pixels_show_the_middle_of_their_part() -> None:
    s = torch.tensor([0.3])
    shown = [
        float(SPLIT.noisy(torch.tensor([x]), s, 0.4 / (2 * math.sqrt(3)))) for x in (0.0, 0.29, 0.31, 0.69, 0.71, 1.0)
    ]
    assert shown == pytest.approx([0.15, 0.15, 0.5, 0.5, 0.85, 0.85])


def test_the_engine_evaluates_every_value_once() -> None:
    x = torch.randint(0, 256, (1, 1, 4, 4), generator=torch.Generator().manual_seed(0)).float() / EIGHT_BIT
    network = Sum(7.5)
    expected = torch.bincount(network(sees(x[0], 0.5, EIGHT_BIT)).argmax(1), minlength=3)
    for batch_size in (7, 100, 1000):
        (found,) = certify(network, x, sigma=0.5, noise="split", batch_size=batch_size)
        assert found.votes.tolist() == expected.tolist()
        assert found.n == round(2 * math.sqrt(3) * 0.5 * EIGHT_BIT) == int(expected.sum())
        assert found.selection.sum() == 0
        assert found.arithmetic == f"exact, all {found.n} values of the noise"
    second, first = sorted(expected.tolist())[-2:]
    assert found.radius == ((first - second - 1) // 2) / EIGHT_BIT > 0
    (linf,) = certify(network, x, sigma=0.5, noise="split", norm="linf")
    assert found.radius / 16 * (1 - 1e-12) <= linf.radius < found.radius / 16
    (voted,) = predict(network, x, sigma=0.5, noise="split")
    assert (voted.predict, voted.n, voted.p_value) == (found.predict, found.n, 0.0)


def test_a_tie_abstains_and_rules_are_refused() -> None:
    x = torch.zeros(1, 1, 2, 2)
    with pytest.raises(UsageError, match="so leave out the stopping rule radii"):
        certify(Sum(1.0), x, sigma=0.5, noise="split", radii=[0.1])
    for rule in (certify_all(10, lambda first, second: 1.0, ""), predict_all(10, "")):
        assert next(rule).total == 10
        with pytest.raises(StopIteration) as stopped:
            rule.send(np.array([5, 5]))
        assert stopped.value.value.predict == -1


def test_images_off_the_grid_are_sampled() -> None:
    (found,) = certify(Sum(7.5), torch.rand(1, 1, 4, 4), sigma=0.5, noise="split", n=1000)
    assert found.arithmetic == "float"
    assert found.selection.sum() == 100


def test_the_road_from_training_to_a_report(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--noise", "split", "--sigma", "0.5", "--arch", "lenet", "--epochs", "2", "--out", "run"]) == 0
    assert run(["certify", "run", "--every", "60"]) == 0
    log = read_log(workplace / "run" / "certify.tsv")
    assert log.settings is not None
    assert (log.settings["rule"], log.settings["alpha"]) == ("enumeration", 0.0)
    capsys.readouterr()
    assert run(["report", "run", "--plot", "curve"]) == 0
    said = capsys.readouterr()
    assert "Certified accuracy (%) at L1 radius r" in said.out
    assert "with alpha 0, where all values of the noise were evaluated" in said.err
    assert run(["predict", "run", "--every", "60"]) == 0
    assert run(["certify", "run", "--budget", "fast"]) == 2
