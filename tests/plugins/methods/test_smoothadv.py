"""SmoothAdv: cross-entropy on noise samples of images that an attack under the same noise has moved."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.plugins.methods import slow
from tests.plugins.methods.slow import Case, Watched, answers, cross_entropy, hold, mean, method, network


def loss_at(model: torch.nn.Module, case: Case, images: Tensor, samples: int) -> float:
    rows = answers(model, images, case.noise(samples))
    return mean([cross_entropy(row, label) for copy in rows for row, label in zip(copy, case.y, strict=True)])


@pytest.mark.parametrize(("samples", "steps"), [(1, 1), (1, 3), (3, 2)])
def test_pgd_then_cross_entropy_under_the_same_noise(samples: int, steps: int) -> None:
    model, case = network(), Case()
    moved = slow.pgd(model, case, samples, 0.4, steps)
    smoothadv = method("smoothadv", m=samples, steps=steps, epsilon=0.4, warmup_epochs=0)
    hold(smoothadv, model, case, lambda: loss_at(model, case, moved, samples), rel=1e-5)


def test_ddn_then_cross_entropy_under_the_same_noise() -> None:
    model, samples = network(scale=3.0), 2
    rows = answers(model, Case(8).x, Case(8).noise(samples))
    right = [slow.place(slow.vote(image)) for image in zip(*rows, strict=True)]
    case = Case(8, labels=[*right[:7], (right[7] + 1) % 3])
    moved, fooled = slow.ddn(model, case, samples, 0.5, 6)
    assert set(fooled[:7]) == {True, False}
    assert torch.equal(moved[7], case.x[7])
    smoothadv = method("smoothadv", m=samples, attack="ddn", steps=6, epsilon=0.5, warmup_epochs=0)
    hold(smoothadv, model, case, lambda: loss_at(model, case, moved, samples), rel=1e-5)


@pytest.mark.parametrize(("epoch", "epsilon"), [(0, 0.1), (1, 0.2), (3, 0.4), (9, 0.4)])
def test_epsilon_grows_over_the_warm_up(epoch: int, epsilon: float) -> None:
    model = network()
    watched, case = Watched(model), Case(epoch=epoch)
    smoothadv = method("smoothadv", m=1, steps=2, epsilon=0.4, warmup_epochs=4)
    smoothadv.loss(watched, case.batch())
    moved = watched.seen[-1] - case.noise(1)[0]
    torch.testing.assert_close(moved, slow.pgd(model, case, 1, epsilon, 2), rtol=1e-5, atol=1e-6)
    assert watched.modes == [False, False, True]


@pytest.mark.parametrize("attack", ["pgd", "ddn"])
def test_labels_that_no_copy_gives_are_learnt_all_the_same(attack: str) -> None:
    """Where every image is wrong PGD goes on, and DDN leaves the images clean."""
    model, case = network(), Case()
    rows = answers(model, case.x, case.noise(2))
    wrong = [min(range(3), key=lambda c: slow.vote(image)[c]) for image in zip(*rows, strict=True)]
    case = Case(labels=wrong)
    options: dict[str, Any] = {"m": 2, "steps": 3, "epsilon": 0.3, "warmup_epochs": 0, "attack": attack}
    moved = case.x if attack == "ddn" else slow.pgd(model, case, 2, 0.3, 3)
    hold(method("smoothadv", **options), model, case, lambda: loss_at(model, case, moved, 2), rel=1e-5)
