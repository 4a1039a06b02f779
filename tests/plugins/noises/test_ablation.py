"""Pixel ablation: the theorem's radii, masks, certificates that are never above the truth, and the command line."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor, nn

from smoothctl import Draws, UsageError, certify
from smoothctl.hooks.noises import Noise
from smoothctl.hooks.registry import registry
from smoothctl.records.log import read_log
from smoothctl.testing import check_noise
from tests.cli.conftest import Typed, typed

__all__ = ["typed"]

ABLATION: Noise = registry().find("noise", "ablation").value


def chance(pixels: int, kept: int, changed: int) -> Fraction:
    """That a draw keeps one of the changed pixels."""
    return 1 - Fraction(comb(pixels - changed, kept), comb(pixels, kept))


@given(st.integers(2, 60), st.floats(0.02, 0.98), st.floats(0.5, 1.0), st.floats(0.0, 0.5))
def test_radii_are_those_of_the_theorem(side: int, sigma: float, p: float, other: float) -> None:
    pixels = 2 * side
    kept, noise = max(1, round((1 - sigma) * pixels)), ABLATION.at((3, 2, side))
    radius = int(noise.radius(p, sigma))
    slack = Fraction(pixels**2, 2**63)
    assert radius == 0 or chance(pixels, kept, radius) < Fraction(p) - Fraction(1, 2) - slack
    assert radius == pixels or chance(pixels, kept, radius + 1) >= Fraction(p) - Fraction(1, 2) - slack
    assert noise.radius_pair is not None
    assert noise.radius_pair(p, 1 - p, sigma) == radius
    pair = int(noise.radius_pair(p, other, sigma))
    assert pair == 0 or 2 * chance(pixels, kept, pair) < Fraction(p) - Fraction(other)


def test_a_radius_of_the_paper() -> None:
    """MNIST with 45 of 784 pixels kept, the paper's choice: p_A = 0.9 proves 8 pixels, p_A = 1 proves 11."""
    noise, sigma = ABLATION.at((1, 28, 28)), 1 - 45 / 784
    assert [noise.radius(p, sigma) for p in (0.5, 0.6, 0.9, 1.0)] == [0, 1, 8, 11]
    assert chance(784, 45, 8) < Fraction(2, 5) <= chance(784, 45, 9)


def test_a_draw_keeps_so_many_pixels_in_all_channels_and_each_as_often() -> None:
    mask = ABLATION.sample((20_000, 3, 2, 5), 0.7, Draws(0))
    assert torch.equal(mask[:, 0], mask[:, 2])
    assert (mask[:, 0].sum((1, 2)) == 3).all()
    shares = mask[:, 0].sum(0).flatten().numpy() / len(mask)
    assert abs(shares - 0.3).max() < 5.5 * (0.3 * 0.7 / len(mask)) ** 0.5
    both = float((mask[:, 0, 0, 0] * mask[:, 0, 1, 4]).mean())  # without replacement
    assert both == pytest.approx(3 / 10 * 2 / 9, abs=0.01)
    x = torch.rand(3, 2, 5)
    noisy = ABLATION.noisy(x, mask[:4], 0.5)
    assert torch.equal(noisy[mask[:4] > 0], x.expand(4, -1, -1, -1)[mask[:4] > 0])
    assert (noisy[mask[:4] == 0] < 0).all()


def test_it_is_what_it_declares_and_a_bolder_one_is_caught() -> None:
    check_noise(ABLATION)

    def bolder(shape: tuple[int, ...]) -> Noise:
        own = ABLATION.at(shape)
        return dataclasses.replace(own, radius=lambda p, sigma: own.radius(p, sigma) + 1)

    with pytest.raises(AssertionError, match="told apart"):
        check_noise(dataclasses.replace(ABLATION, for_shape=bolder))


class SeesBright(nn.Module):
    """Class 1 where a bright pixel is seen."""

    def forward(self, x: Tensor) -> Tensor:
        seen = (x > 0.75).flatten(1).any(1).float()
        return torch.stack([1 - seen, seen], 1)


@pytest.mark.parametrize("bound", ["binary", "multi"])
def test_radii_are_above_the_truth_no_more_often_than_alpha(bound: str) -> None:
    """With s of 36 pixels bright, p_A is the chance that one is kept: so many may go dark until that is 1/2."""
    bright, kept, alpha = 8, 9, 0.1
    x = torch.zeros(1, 6, 6).flatten(1)
    x[:, :bright] = 1.0
    found = certify(
        SeesBright(), x.view(1, 1, 6, 6).repeat(100, 1, 1, 1), sigma=0.75, noise="ablation", n0=10, n=300, alpha=alpha,
        bound=bound,
    )  # fmt: skip
    truth = max(gone for gone in range(bright) if chance(36, kept, bright - gone) > Fraction(1, 2))
    assert all(each.arithmetic == "exact, nothing is rounded" for each in found)
    radii = [each.radius for each in found if each.predict == 1]
    assert len(radii) > 90
    assert all(radius == int(radius) for radius in radii)
    assert sum(radius > truth for radius in radii) <= stats.binom.ppf(0.9999, len(found), alpha)
    # 1/2 is reached after `truth` pixels only in the worst case, which these images are not.
    assert max(radii) >= 1


def test_it_trains_certifies_and_is_reported(typed: Typed, workplace: Path) -> None:
    assert typed("train --arch lenet --noise ablation --sigma 0.7 --epochs 3 --lr 0.01 --out run").code == 0
    assert typed("certify run --n 500 --max 20").code == 0
    settings = json.loads(Path("run/certify.json").read_text())["settings"]
    assert (settings["noise"], settings["norm"]) == ("ablation", "l0")
    assert {row.radius for row in read_log(Path("run/certify.tsv")).rows} <= set(map(float, range(64)))
    done = typed("report run --out page --what-if alpha=0.001")
    assert done.code == 0
    assert "Certified accuracy (%) at L0 radius r" in done.out
    assert "L0 radii count pixels" in done.out + done.err
    own, again = (line.split("0..19")[1] for line in done.out.splitlines() if "0..19" in line)
    assert own.split() == again.split()
    assert "L0" in Path("page/index.html").read_text()
    assert typed("predict run --n 200 --max 3").code == 0
    assert typed("certify run --n 2000 --max 5 --radii 1 --out asked.tsv").code == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("certify RUN --noise ablation --sigma 0.4 --n 100 --max 1 --out x.tsv", "sigma=0.4 proves no radius above 0"),
        ("train --noise ablation --sigma 1 --epochs 1 --limit 50", "sigma is the share of pixels"),
        ("train --noise ablation --method smoothadv --epochs 1 --limit 50", "choose another method"),
        (
            "certify RUN --noise ablation --norm linf --n 100 --max 1 --out x.tsv",
            "l0 cannot be converted to one in linf",
        ),
    ],
)
def test_what_it_cannot_do_is_one_line(line: str, words: str, typed: Typed, trained: Path, workplace: Path) -> None:
    done = typed(line.replace("RUN", str(trained)))
    assert done.code == 2
    assert words in done.err.splitlines()[-1]


def test_a_radius_needs_a_shape() -> None:
    with pytest.raises(UsageError, match="how many pixels"):
        ABLATION.radius(0.9, 0.5)
