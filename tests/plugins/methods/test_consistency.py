"""Consistency regularization: noise samples of an image should agree, and be sure."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from smoothctl import UsageError
from tests.plugins.methods import slow
from tests.plugins.methods.slow import (
    Case,
    Given,
    Watched,
    answers,
    cross_entropy,
    divergence,
    entropy,
    hold,
    mean,
    method,
    network,
    softmax,
    vote,
)


def loss_at(model: nn.Module, case: Case, images: Tensor, samples: int, lbd: float, eta: float) -> float:
    rows = answers(model, images, case.noise(samples))
    losses = []
    for image, label in zip(zip(*rows, strict=True), case.y, strict=True):
        centre = vote(image)
        apart = mean([divergence(centre, softmax(row)) for row in image])
        losses.append(mean([cross_entropy(row, label) for row in image]) + lbd * apart + eta * entropy(centre))
    return mean(losses)


@pytest.mark.parametrize(("samples", "lbd", "eta"), [(2, 10.0, 0.5), (3, 0.0, 1.0), (4, 5.0, 0.0)])
def test_it_is_cross_entropy_divergence_from_the_mean_and_entropy_of_the_mean(
    samples: int, lbd: float, eta: float
) -> None:
    model, case = network(), Case()
    consistency = method("consistency", m=samples, lbd=lbd, eta=eta)
    hold(consistency, model, case, lambda: loss_at(model, case, case.x, samples, lbd, eta))


@pytest.mark.parametrize("attack", ["pgd", "ddn"])
def test_on_smoothadv_the_images_are_attacked_first_under_the_same_noise(attack: str) -> None:
    model, case = network(scale=3.0), Case()
    moved = slow.pgd(model, case, 2, 0.4, 3) if attack == "pgd" else slow.ddn(model, case, 2, 0.4, 3)[0]
    consistency = method(
        "consistency", m=2, lbd=2.0, eta=0.5, base="smoothadv", attack=attack, steps=3, epsilon=0.4, warmup_epochs=0
    )
    hold(consistency, model, case, lambda: loss_at(model, case, moved, 2, 2.0, 0.5), rel=1e-5)
    watched = Watched(model)
    consistency.loss(watched, case.batch())
    assert watched.modes == [False] * 3 + [True]


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_identical_copies_do_not_diverge(scale: float) -> None:
    rows = scale * torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    model = Given(rows.repeat(2, 1))
    loss, parts = method("consistency", m=2).loss(model, Case(4).batch())
    loss.backward()
    assert parts["divergence"].item() == pytest.approx(0, abs=1e-6)
    assert parts["entropy"].item() == pytest.approx(mean([entropy(softmax(row)) for row in rows.tolist()]), abs=1e-6)
    assert torch.isfinite(model.logits.grad).all()


def test_copies_that_disagree_for_certain_have_a_finite_loss_and_gradient() -> None:
    """Each copy is sure of another class, so that each probability underflows somewhere."""
    model = Given(torch.tensor([[1e3, 0.0, 0.0], [0.0, 1e3, 0.0]]))
    loss, parts = method("consistency", m=2, lbd=1.0, eta=1.0).loss(model, Case(1).batch())
    loss.backward()
    # KL((1/2, 1/2) || (1, exp(-1000))) = -log 2 + 500
    assert parts["divergence"].item() == pytest.approx(500 - math.log(2), rel=1e-6)
    assert parts["entropy"].item() == pytest.approx(math.log(2), rel=1e-6)
    assert torch.isfinite(model.logits.grad).all()


def test_one_copy_has_nothing_to_agree_with() -> None:
    with pytest.raises(UsageError, match="greater than or equal to 2"):
        method("consistency", m=1)
