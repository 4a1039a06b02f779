"""SmoothMix: between an image and its adversary, answers fade to the uniform one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.plugins.methods.slow import (
    CLASSES,
    Case,
    Given,
    Watched,
    answers,
    ascent,
    cross_entropy,
    divergence,
    hold,
    mean,
    method,
    network,
    norm,
    place,
    shortened,
    soft_loss,
    softmax,
    vote,
)


def slow_attack(model: nn.Module, case: Case, options: dict[str, Any], warm: float) -> tuple[Tensor, Tensor]:
    """The images that are learnt, and their adversaries, one image at a time."""
    starts, adversaries = [], []
    for x, label, noise in zip(case.x, case.y, case.noise(options["m"]).transpose(0, 1), strict=True):
        path = [x]
        for _ in range(options["T"]):
            direction = ascent(lambda image, y=label, n=noise: soft_loss(model, image, y, n), path[-1])
            delta = path[-1] + options["alpha"] * direction - x
            if options.get("max_norm"):
                delta = shortened(delta, options["max_norm"])
            path.append((x + delta).clamp(0, 1))
        steps = options.get("mix_step", 0)
        start = path[min(steps, options["T"])]
        starts.append(x if steps == 0 else x + shortened(start - x, options["alpha"] * steps * warm))
        adversaries.append(path[-1])
    return torch.stack(starts), torch.stack(adversaries)


def slow_loss(
    model: nn.Module, case: Case, images: tuple[Tensor, Tensor], samples: int, weight: float
) -> tuple[float, float]:
    """The loss, and the share of images whose vote is right."""
    start, adversary = images
    shares = [number / 2 for number in case.uniform()[0]]
    mixed = torch.stack([(1 - s) * a + s * b for s, a, b in zip(shares, start, adversary, strict=True)])
    own, between = (answers(model, shown, case.noise(samples)) for shown in (start, mixed))
    losses, right = [], []
    for image, moved, share, label in zip(
        zip(*own, strict=True), zip(*between, strict=True), shares, case.y, strict=True
    ):
        answer = vote(image)
        target = [(1 - share) * p + share / CLASSES for p in answer]
        right.append(place(answer) == label)
        fade = mean([divergence(target, softmax(row)) for row in moved]) if right[-1] else 0.0
        losses.append(mean([cross_entropy(row, label) for row in image]) + weight * fade)
    return mean(losses), mean(right)


CASES: list[dict[str, Any]] = [
    {"T": 1, "m": 1, "alpha": 0.3, "eta": 1.0},
    {"T": 3, "m": 2, "alpha": 0.2, "eta": 5.0},
    {"T": 3, "m": 2, "alpha": 0.2, "eta": 5.0, "mix_step": 1},
    {"T": 3, "m": 2, "alpha": 0.2, "eta": 5.0, "mix_step": 2, "max_norm": 0.3},
    {"T": 2, "m": 1, "alpha": 0.2, "eta": 5.0, "mix_step": 2},
    {"T": 2, "m": 1, "alpha": 0.2, "eta": 5.0, "mix_step": 7},
    {"T": 4, "m": 3, "alpha": 8.0, "eta": 0.0},
]


@pytest.mark.parametrize("options", CASES, ids=str)
@pytest.mark.parametrize(("epoch", "warm"), [(0, 0.25), (2, 0.75), (9, 1.0)])
def test_it_is_cross_entropy_and_divergence_from_faded_answers(
    options: dict[str, Any], epoch: int, warm: float
) -> None:
    """The gradient through the faded answers counts too, as in the authors' code."""
    model, case = network(scale=3.0), Case(9, epoch=epoch)
    images = slow_attack(model, case, options, warm)
    weight = options["eta"] * warm
    parts = hold(
        method("smoothmix", **options, warmup_epochs=4), model, case,
        lambda: slow_loss(model, case, images, options["m"], weight)[0], rel=1e-5,
    )  # fmt: skip
    assert parts["right"] == pytest.approx(slow_loss(model, case, images, options["m"], weight)[1])
    assert 0 < parts["right"] < 1


@pytest.mark.parametrize(("max_norm", "bound"), [(None, 4 * 0.25), (0.3, 0.3)])
def test_what_is_shown_stays_in_the_box_and_within_the_norm(max_norm: float | None, bound: float) -> None:
    """Shares stay below one half, and the attack runs in eval mode."""
    watched, case = Watched(network()), Case(9)
    options: dict[str, Any] = {"T": 4, "m": 2, "alpha": 0.25, "max_norm": max_norm, "mix_step": 1}
    method("smoothmix", **options).loss(watched, case.batch())
    assert watched.modes == [False] * 4 + [True, True]
    shown = [seen.view(2, 9, *case.x.shape[1:]) - case.noise(2) for seen in watched.seen]
    for images in shown:
        torch.testing.assert_close(images[0], images[1])
        assert images.min() >= -1e-12
        assert images.max() <= 1 + 1e-12
    assert all(norm(delta) <= bound + 1e-9 for images in shown for delta in images[0] - case.x)
    start, mixed = shown[-2][0], shown[-1][0]
    assert all(norm(delta) <= 0.25 / 10 + 1e-9 for delta in start - case.x)
    assert (mixed - start).abs().max() > 0.01


def test_a_share_of_zero_leaves_image_and_answer_as_they_are() -> None:
    """Then the mixed loss is the divergence of samples from their vote."""
    model, case = network(scale=3.0), Case(9)
    batch = replace(case.batch(), sample_uniform=torch.zeros)
    _, parts = method("smoothmix", T=2, m=2).loss(model, batch)
    rows = zip(*answers(model, case.x, case.noise(2)), strict=True)
    fades = [
        mean([divergence(vote(image), softmax(row)) for row in image]) if place(vote(image)) == label else 0.0
        for image, label in zip(rows, case.y, strict=True)
    ]
    assert parts["mixed"].item() == pytest.approx(mean(fades))


@pytest.mark.parametrize("uniform", [0.0, 0.5])
def test_probabilities_that_underflow_leave_loss_and_gradient_finite(uniform: float) -> None:
    model = Given(torch.tensor([[1e3, 0.0, 0.0], [0.0, 1e3, -1e3]]))
    batch = replace(Case(2, labels=[0, 1]).batch(), sample_uniform=lambda shape: torch.full(shape, uniform))
    loss, parts = method("smoothmix", T=1, m=1, warmup_epochs=0).loss(model, batch)
    loss.backward()
    share = uniform / 2
    own, other = 1 - share + share / 3, share / 3
    entropy = own * math.log(own) + (2 * other * math.log(other) if other else 0)
    away = [other * 2000, other * 1000 + other * 2000]
    assert parts["mixed"].item() == pytest.approx(mean([entropy + part for part in away]), rel=1e-6, abs=1e-9)
    assert torch.isfinite(model.logits.grad).all()


def test_where_every_image_is_wrong_only_cross_entropy_is_left() -> None:
    model, case = network(), Case()
    rows = answers(model, case.x, case.noise(2))
    case = Case(labels=[min(range(3), key=lambda c: vote(image)[c]) for image in zip(*rows, strict=True)])
    expected = mean([cross_entropy(row, y) for copy in rows for row, y in zip(copy, case.y, strict=True)])
    loss, parts = method("smoothmix", T=1, m=2).loss(model, case.batch())
    assert loss.item() == pytest.approx(expected)
    assert (parts["mixed"].item(), parts["right"].item()) == (0, 0)
