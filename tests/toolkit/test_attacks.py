"""Attacks: how far they go, that they help and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from smoothctl import Draws, ascent_direction, attack_batch, load_model, log_averaged_softmax, soft_cross_entropy
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import pixels
from smoothctl.toolkit.attacks import AttackOptions, ddn, pgd
from smoothctl.training.passes import CountedModel
from tests.networks import BatchDependent
from tests.plugins.methods import slow
from tests.plugins.methods.slow import Case, Given, Watched, answers, network, place, vote

Attack = Callable[[nn.Module, Tensor, Tensor, Tensor, float, int], Tensor]

both = pytest.mark.parametrize("attack", [pgd, ddn])


class Linear(nn.Module):
    """Logits from a matrix [K,C*H*W] and a bias [K]."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None):
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(len(weight), dtype=weight.dtype) if bias is None else bias)

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.weight.T + self.bias


def norms(delta: Tensor) -> Tensor:
    return delta.flatten(1).norm(dim=1)


@settings(max_examples=60, deadline=None)
@given(
    attack=st.sampled_from([pgd, ddn]), seed=st.integers(0, 10**6), count=st.integers(1, 4), samples=st.integers(1, 4),
    size=st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6)), epsilon=st.floats(1e-3, 20),
    steps=st.integers(1, 8), scale=st.sampled_from([1e-12, 1.0, 30.0]), grey=st.booleans(),
)  # fmt: skip
def test_attacks_stay_within_epsilon_and_the_box(
    attack: Attack, seed: int, count: int, samples: int, size: tuple[int, int, int], epsilon: float, steps: int,
    scale: float, grey: bool,
) -> None:  # fmt: skip
    """Whatever the network; also for images that are no grey levels, as those of float arrays."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(count, *size, generator=generator)
    x = (255 * x).round() / 255 if grey else x
    noise = 0.3 * torch.randn(samples * count, *size, generator=generator)
    y = torch.randint(0, 3, (count,), generator=generator)
    weight = scale * torch.randn(3, math.prod(size), generator=generator)
    moved = attack(Linear(weight), x, y, noise, epsilon, steps)
    assert torch.isfinite(moved).all()
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert (norms(moved - x) <= epsilon * (1 + 1e-5) + 1e-6).all()


def digits(trained: Path, count: int = 40, samples: int = 4) -> tuple[nn.Module, Tensor, Tensor, Tensor]:
    """A network trained on the digits, some of its images and labels, and noise."""
    images = registry().find("dataset", "digits").value.load("test", None, False)
    x = torch.stack([pixels(images, place) for place in range(count)])
    y = torch.tensor([images[place][1] for place in range(count)])
    return load_model(trained).classifier, x, y, 0.25 * Draws(0, 1).normal((samples * count, *x.shape[1:]))


def loss_of(model: nn.Module, x: Tensor, y: Tensor, noise: Tensor) -> Tensor:
    with torch.no_grad():
        return soft_cross_entropy(model(x.repeat(len(noise) // len(x), 1, 1, 1) + noise), y)


def test_pgd_raises_the_loss_of_a_trained_network_and_more_with_a_larger_epsilon(trained: Path) -> None:
    model, x, y, noise = digits(trained)
    clean = loss_of(model, x, y, noise)
    near, far = (loss_of(model, pgd(model, x, y, noise, epsilon, 5), y, noise) for epsilon in (0.25, 1.0))
    assert (near > clean).all()
    assert (far > near).all()
    random = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    random = (x + 0.25 * random / norms(random).view(-1, 1, 1, 1)).clamp(0, 1)
    assert (near - clean).mean() > 3 * (loss_of(model, random, y, noise) - clean).abs().mean()


def test_ddn_fools_a_trained_network_with_less_than_pgd_takes(trained: Path) -> None:
    model, x, y, noise = digits(trained)
    wrong, (moved, lengths) = mistakes(model, x, y, noise), measured(ddn(model, x, y, noise, 1.0, 20), x)
    assert wrong.any()
    assert (lengths[wrong] == 0).all()
    found = lengths > 0
    assert found.float().mean() > 0.5
    assert mistakes(model, moved, y, noise)[found & (lengths < 0.99)].all()
    _, longest = measured(pgd(model, x, y, noise, 1.0, 20), x)
    assert lengths[found].mean() < longest[found].mean()


def measured(moved: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    return moved, norms(moved - x)


def mistakes(model: nn.Module, x: Tensor, y: Tensor, noise: Tensor) -> Tensor:
    """Where the averaged softmax is not the label."""
    with torch.no_grad():
        logits = model(x.repeat(len(noise) // len(x), 1, 1, 1) + noise)
    return log_averaged_softmax(logits, len(noise) // len(x)).argmax(dim=1) != y


@pytest.mark.parametrize(("samples", "steps"), [(1, 1), (2, 1), (3, 4)])
def test_pgd_is_algorithm_1(samples: int, steps: int) -> None:
    case, model = Case(6), network()
    found = pgd(model, case.x, torch.tensor(case.y), case.noise(samples).flatten(0, 1), 0.5, steps)
    torch.testing.assert_close(found, slow.pgd(model, case, samples, 0.5, steps), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("samples", "steps"), [(1, 1), (1, 2), (3, 9)])
def test_ddn_is_rony_et_al(samples: int, steps: int) -> None:
    """Half of the labels are right at first: of these DDN fools some; the others stay clean, misclassified or not."""
    case, model = Case(10), network(scale=3.0)
    rows = answers(model, case.x, case.noise(samples))
    right = [place(vote(image)) for image in zip(*rows, strict=True)]
    case = Case(10, labels=[*right[:5], *((label + 1) % 3 for label in right[5:])])
    expected, fooled = slow.ddn(model, case, samples, 0.4, steps)
    found = ddn(model, case.x, torch.tensor(case.y), case.noise(samples).flatten(0, 1), 0.4, steps)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(found[5:], case.x[5:])
    assert all(fooled[5:])
    for image in range(5):
        assert torch.equal(found[image], case.x[image]) == (not fooled[image])
    if steps == 9:
        assert any(fooled[:5])


@pytest.mark.parametrize(("epsilon", "shortened"), [(1.0, False), (0.28, True)])
def test_ddn_returns_the_smallest_perturbation_that_was_wrong(epsilon: float, shortened: bool) -> None:
    """On a line: class 1 beyond 0.5, image at 0.2. What is longer than epsilon is shortened to it."""
    model = Watched(Linear(torch.tensor([[0.0], [20.0]]), torch.tensor([0.0, -10.0])))
    x, noise = torch.full((1, 1, 1, 1), 51 / 255), torch.zeros(1, 1, 1, 1)
    found = ddn(model, x, torch.tensor([0]), noise, epsilon, 12)
    tried = torch.stack([seen.flatten()[0] for seen in model.seen])
    wrong = tried[tried > 0.5]
    assert len(wrong) > 2
    assert found.item() == pytest.approx(x.item() + epsilon if shortened else wrong.min().item(), abs=1e-6)


def test_one_pgd_step_on_a_linear_network_has_a_closed_form() -> None:
    """With two classes the gradient points along the difference of their weights, wherever it is taken."""
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(2, 12, generator=generator)
    x, noise = torch.full((2, 3, 2, 2), 0.5), 0.1 * torch.randn(6, 3, 2, 2, generator=generator)
    found = pgd(Linear(weight), x, torch.tensor([0, 1]), noise, 0.3, 1)
    along = (weight[1] - weight[0]).view(3, 2, 2) / (weight[1] - weight[0]).norm()
    # A step of 2 * epsilon is longer than epsilon, so that it ends at epsilon.
    torch.testing.assert_close(found, x + 0.3 * torch.stack([along, -along]), rtol=1e-5, atol=1e-6)


@both
def test_a_step_is_one_pass_for_all_copies(attack: Attack) -> None:
    torch.manual_seed(0)
    model = Watched(BatchDependent())
    x, y = torch.rand(3, 3, 8, 8), torch.tensor([0, 1, 2])
    attack(model, x, y, torch.zeros(15, 3, 8, 8), 0.5, 4)
    assert [len(seen) for seen in model.seen] == [15] * 4
    counted = CountedModel(BatchDependent())
    attack(counted, x, y, torch.zeros(15, 3, 8, 8), 0.5, 4)
    assert (counted.passes.forward, counted.passes.backward) == (60, 60)


@both
def test_without_a_gradient_images_stay_where_they_are(attack: Attack) -> None:
    x = torch.rand(3, 1, 4, 4)
    flat = Given(torch.randn(6, 3))
    assert torch.equal(attack(flat, x, torch.tensor([0, 1, 2]), torch.zeros(6, 1, 4, 4), 0.5, 4), x)


@pytest.mark.parametrize("size", [1e-44, 1e-38, 1e-30, 1e-23, 1e-20, 1.0, 1e18, 1e30])
def test_directions_have_length_one_however_small_the_gradient(size: float) -> None:
    """Squares of small and large numbers leave float32; an image without a gradient has no direction."""
    at = torch.zeros(2, 1, 2, 2, requires_grad=True)
    weights = torch.tensor([[3.0, 4.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]).view(2, 1, 2, 2)
    direction = ascent_direction((at * weights).flatten(1).sum(dim=1) * size, at)
    tolerance = 0.05 if size < 1e-42 else 1e-5  # 1e-44 is seven times the smallest number
    torch.testing.assert_close(direction[0].flatten()[:2], torch.tensor([0.6, 0.8]), rtol=tolerance, atol=tolerance)
    assert norms(direction).tolist() == pytest.approx([1, 0], abs=1e-5)


@pytest.mark.parametrize("margin", [1.0, 15.0, 17.0, 60.0, 80.0])
def test_sure_images_are_attacked_in_the_direction_of_float64(margin: float) -> None:
    """At a margin of 60 the gradient is 1e-26, and 1 - p of the label is nothing in float32."""
    weight = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    bias = torch.tensor([margin, 0.0, 0.0])
    x, noise = torch.full((1, 1, 2, 2), 0.5), 0.1 * torch.randn(3, 1, 2, 2, generator=torch.Generator().manual_seed(2))
    y = torch.tensor([0])
    found = pgd(Linear(weight, bias), x, y, noise, 0.3, 3)
    expected = pgd(Linear(weight.double(), bias.double()), x.double(), y, noise.double(), 0.3, 3)
    assert norms(expected - x).item() == pytest.approx(0.3, rel=1e-5)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("warmup", "expected"), [(0, [2.0] * 4), (1, [2.0] * 4), (2, [1.0, 2.0, 2.0, 2.0]), (4, [0.5, 1.0, 1.5, 2.0])]
)
def test_epsilon_grows_by_epoch(warmup: int, expected: list[float]) -> None:
    options = AttackOptions(epsilon=2.0, warmup_epochs=warmup)
    assert [options.epsilon_at(epoch) for epoch in range(4)] == pytest.approx(expected)


@both
def test_a_batch_is_attacked_as_its_options_say(attack: Attack) -> None:
    case, model = Case(4, epoch=1), network(scale=3.0)
    noise = case.noise(2).flatten(0, 1)
    options = AttackOptions(attack=attack.__name__, steps=3, epsilon=0.8, warmup_epochs=4)
    expected = attack(model, case.x, torch.tensor(case.y), noise, 0.4, 3)
    assert torch.equal(attack_batch(model, case.batch(), noise, options), expected)


@pytest.mark.parametrize("batch_size", [1, 4, 7])
def test_the_noise_of_an_attack_may_come_in_parts(batch_size: int) -> None:
    generator = torch.Generator().manual_seed(3)
    model = Linear(torch.randn(4, 12, generator=generator).double())
    x, y = torch.rand(2, 3, 2, 2, generator=generator).double(), torch.tensor([1, 3])
    noise = torch.randn(10, 3, 2, 2, generator=generator).double()
    whole = pgd(model, x, y, noise, 0.7, 6)
    torch.testing.assert_close(pgd(model, x, y, noise, 0.7, 6, batch_size=batch_size), whole)
    assert not torch.equal(whole, x)


def test_steps_have_the_length_that_was_asked_for() -> None:
    model, x = Linear(torch.eye(4)), torch.full((1, 1, 2, 2), 0.5)
    moved = pgd(model, x, torch.tensor([1]), torch.zeros(1, 1, 2, 2), 10.0, 1, step_size=0.1)
    assert norms(moved - x).item() == pytest.approx(0.1)
