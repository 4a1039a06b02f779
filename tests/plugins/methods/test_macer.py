"""MACER: cross-entropy of the averaged softmax and a hinge on the certified radius."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from torch import Tensor

from tests.plugins.methods.slow import SIGMA, Case, Given, answers, hold, mean, method, network, place, softmax, vote


def slow_terms(model: torch.nn.Module, case: Case, samples: int, beta: float, gamma: float) -> list[tuple[float, ...]]:
    """For each image: -log of the averaged softmax for the label, sigma/2 * (gamma - margin) where it counts, the
    margin, and whether the label leads (Zhai et al. 2020, equations 9 to 11)."""
    terms = []
    rows = answers(model, case.x, case.noise(samples))
    for image, label in zip(zip(*rows, strict=True), case.y, strict=True):
        sharp = vote([[beta * value for value in row] for row in image])
        second, first = sorted(sharp)[-2:]
        margin = float(norm.ppf(first) - norm.ppf(second))
        right = place(sharp) == label
        hinge = SIGMA / 2 * (gamma - margin) if right and margin <= gamma else 0.0
        terms.append((-math.log(vote(image)[label]), hinge, margin, right))
    return terms


@pytest.mark.parametrize(("samples", "beta", "lbd"), [(1, 1.0, 3.0), (4, 2.0, 12.0), (4, 1.0, 0.0), (16, 3.0, 1.0)])
def test_it_is_cross_entropy_of_the_vote_and_a_hinge_on_right_images(samples: int, beta: float, lbd: float) -> None:
    gamma, model, case = 1.0, network(), Case(12)
    macer = method("macer", k=samples, beta=beta, gamma=gamma, lbd=lbd)

    def slow() -> float:
        return mean([ce + lbd * hinge for ce, hinge, _, _ in slow_terms(model, case, samples, beta, gamma)])

    parts = hold(macer, model, case, slow)
    terms = slow_terms(model, case, samples, beta, gamma)
    assert parts["cross_entropy"] == pytest.approx(mean([term[0] for term in terms]))
    assert parts["radius_hinge"] == pytest.approx(mean([term[1] for term in terms]))
    assert parts["pushed"] == pytest.approx(mean([right and margin < gamma for *_, margin, right in terms]))
    assert parts["confident"] == pytest.approx(mean([right and margin >= gamma for *_, margin, right in terms]))
    assert parts["pushed"] > 0
    assert parts["pushed"] + parts["confident"] < 1


@pytest.mark.parametrize(("epoch", "acts"), [(0, False), (2, False), (3, True), (50, True)])
def test_the_radius_is_left_out_in_deferred_epochs(epoch: int, acts: bool) -> None:
    model, case = network(), Case(12, epoch=epoch)
    macer = method("macer", k=2, beta=2.0, gamma=1.0, lbd=5.0, deferred=3)

    def slow() -> float:
        return mean([ce + 5.0 * acts * hinge for ce, hinge, *_ in slow_terms(model, case, 2, 2.0, 1.0)])

    assert hold(macer, model, case, slow)["radius_hinge"] > 0


def test_where_every_image_is_wrong_only_cross_entropy_is_left() -> None:
    model, case = network(), Case()
    rows = answers(model, case.x, case.noise(2))
    least = [min(range(3), key=lambda c: vote(image)[c]) for image in zip(*rows, strict=True)]
    case = Case(labels=least)
    parts = hold(
        method("macer", k=2, lbd=12.0), model, case, lambda: mean([t[0] for t in slow_terms(model, case, 2, 16.0, 8.0)])
    )
    assert (parts["radius_hinge"], parts["pushed"], parts["confident"]) == (0, 0, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [10.0, 1e3, 1e5])
def test_sure_images_count_as_confident_and_leave_gradients_finite(dtype: torch.dtype, size: float) -> None:
    """Three right, one wrong, and one whose samples are sure of two classes, so that its margin is zero."""
    eye = torch.eye(3, dtype=dtype)
    first, second = size * eye[[0, 1, 2, 1, 1]], size * eye[[0, 1, 2, 1, 2]]
    model = Given(torch.cat([first, second]))
    case = Case(5, labels=[0, 1, 2, 0, 1])
    loss, parts = method("macer", k=2, lbd=12.0).loss(model, case.batch())
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(model.logits.grad).all()
    assert parts["confident"].item() == pytest.approx(3 / 5)
    # Which of two equal classes leads is open, so the last image may be pushed or not.
    assert parts["pushed"].item() in (0, pytest.approx(1 / 5))


def test_an_image_that_float32_rounds_to_certain_is_still_pushed() -> None:
    """1 - p_A = 4.1e-8 is nothing in float32 next to one, where the published formula drops the image."""
    model = Given(torch.tensor([[17.0, 0.0, -40.0]]))
    case = Case(1, labels=[0])
    loss, parts = method("macer", k=1, beta=1.0, gamma=12.0, lbd=1.0).loss(model, case.batch())
    loss.backward()
    assert softmax([17.0, 0.0, -40.0])[1] < torch.finfo(torch.float32).eps / 2
    assert parts["pushed"].item() == 1
    expected = SIGMA / 2 * (12.0 - 2 * norm.isf(softmax([17.0, 0.0, -40.0])[1]))
    assert parts["radius_hinge"].item() == pytest.approx(expected, rel=1e-5)
    assert model.logits.grad[0, 0] < 0


def published(logits: Tensor, samples: int, y: Tensor, beta: float, gamma: float) -> tuple[Tensor, Tensor]:
    """The authors' radius term in float32, and where it is finite (Zhai et al. 2020, as released)."""
    p = (beta * logits).softmax(dim=1).view(samples, len(y), -1).mean(dim=0)
    (first, second), leader = p.topk(2, dim=1).values.unbind(1), p.argmax(dim=1)
    normal = torch.distributions.Normal(0.0, 1.0)
    gap = normal.icdf(second) - normal.icdf(first)
    finite = torch.isfinite(gap)
    counted = finite & (leader == y) & (gap.abs() <= gamma)
    return SIGMA / 2 * torch.where(counted, gap + gamma, 0.0), finite


@given(st.integers(0, 2**31), st.floats(0.01, 0.4), st.sampled_from([1, 2, 16]))
def test_it_equals_the_published_float32_formula_where_that_is_finite(seed: int, scale: float, samples: int) -> None:
    logits = scale * torch.randn(samples * 6, 4, generator=torch.Generator().manual_seed(seed))
    y = torch.arange(6) % 4
    radii, finite = published(logits, samples, y, 16.0, 8.0)
    for image in range(6):
        if finite[image]:
            rows = logits.view(samples, 6, 4)[:, image]
            case = Case(1, labels=[int(y[image])])
            _, parts = method("macer", k=samples).loss(Given(rows), case.batch())
            # float32 knows 1 - p_A only to 6e-8, so that large margins are coarse.
            assert parts["radius_hinge"].item() == pytest.approx(radii[image].item(), rel=1e-2, abs=2e-3)
