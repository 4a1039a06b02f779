"""CAT-RS: the easiest samples of uncertain images, and the worst samples of sure ones."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import binom
from torch import Tensor, nn

from tests.plugins.methods.slow import (
    CLASSES,
    SIGMA,
    Answers,
    Case,
    Given,
    Row,
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
    softmax,
    vote,
)


def slow_targets(own: Answers, teacher: Answers | None) -> list[Row]:
    """Of each image: the share of the teacher's votes for each class, else the averaged softmax."""
    if teacher is None:
        return [vote(image) for image in zip(*own, strict=True)]
    samples = len(teacher)
    voted = [[place(row) for row in image] for image in zip(*teacher, strict=True)]
    return [[classes.count(c) / samples for c in range(CLASSES)] for classes in voted]


def slow_attack(model: nn.Module, case: Case, samples: int, targets: list[Row], epsilon: float, steps: int) -> Tensor:
    """Noises [samples,B,...] moved one at a time; asserts what the paper promises of them before they are rescaled."""

    def apart(x: Tensor, noise: Tensor, target: Row) -> float:
        return divergence(target, softmax(answers(model, x.unsqueeze(0), noise.unsqueeze(0).unsqueeze(0))[0][0]))

    moved = case.noise(samples).clone()
    for copy, noises in enumerate(case.noise(samples)):
        for image, (noise, target) in enumerate(zip(noises, targets, strict=True)):
            at = noise
            for _ in range(steps):
                direction = ascent(lambda n, x=case.x[image], t=target: apart(x, n, t), at)
                at = noise + shortened(at + 2 * epsilon / steps * direction - noise, epsilon)
                assert norm(at - noise) <= epsilon + 1e-9
                numbers = at.flatten().tolist()
                own, was = mean(numbers), mean(noise.flatten().tolist())
                spread = math.dist(numbers, [own] * len(numbers))
                wanted = math.dist(noise.flatten().tolist(), [was] * len(numbers))
                at = (at - own) * wanted / spread + was
            moved[copy, image] = at
    return moved


def slow_counts(judge: Answers, case: Case, samples: int) -> list[int]:
    """K of each image: how many of its uniform numbers are below the share of the judge's samples that are right."""
    counts = []
    for image, label, numbers in zip(
        zip(*judge, strict=True), case.y, zip(*case.uniform(samples), strict=True), strict=True
    ):
        confidence = mean([place(row) == label for row in image])
        counts.append(max(1, sum(number < confidence for number in numbers)))
    return counts


def check(
    case: Case, samples: int, lbd: float, epsilon: float = 0.3, steps: int = 2, **modes: str
) -> tuple[list[int], float]:
    """Hold the loss against the paper's formula; returns every image's K and the worst-case term."""
    model = network(scale=3.0)
    own = answers(model, case.x, case.noise(samples))
    teacher_sigma = (
        SIGMA if case.teacher_sigma is None or modes.get("teacher_noise") == "student" else case.teacher_sigma
    )
    taught = (
        None if case.teacher is None else answers(case.teacher, case.x, case.noise(samples) / SIGMA * teacher_sigma)
    )
    judge = taught if modes.get("confidence") == "teacher" and taught is not None else own
    targets, counts = slow_targets(own, taught), slow_counts(judge, case, samples)
    moved = slow_attack(model, case, samples, targets, epsilon, steps)

    def terms() -> list[tuple[float, float]]:
        own, worst = answers(model, case.x, case.noise(samples)), answers(model, case.x, moved)
        found = []
        for image, after, label, target, k in zip(
            zip(*own, strict=True), zip(*worst, strict=True), case.y, targets, counts, strict=True
        ):
            low = sum(sorted(cross_entropy(row, label) for row in image)[:k]) / samples
            high = max(divergence(target, softmax(row)) for row in after) if k == samples else 0.0
            found.append((low, high))
        return found

    cat_rs = method("cat-rs", m=samples, lbd=lbd, epsilon=epsilon, steps=steps, **modes)
    parts = hold(cat_rs, model, case, lambda: mean([low + lbd * high for low, high in terms()]), rel=1e-5)
    assert parts["low"] == pytest.approx(mean([low for low, _ in terms()]))
    assert parts["high"] == pytest.approx(mean([high for _, high in terms()]), rel=1e-5, abs=1e-12)
    assert parts["sure"] == pytest.approx(mean([k == samples for k in counts]))
    return counts, parts["high"]


@pytest.mark.parametrize("taught", [False, True])
@pytest.mark.parametrize("lbd", [0.0, 2.0])
def test_it_is_the_lowest_losses_and_the_worst_divergence_of_sure_images(taught: bool, lbd: float) -> None:
    counts, high = check(Case(12, teacher=network(5) if taught else None), 4, lbd)
    assert {1, 4} < set(counts)  # some K between too
    assert high > 0


@pytest.mark.parametrize("teacher_noise", ["own", "student"])
@pytest.mark.parametrize("confidence", ["model", "teacher"])
def test_a_teacher_of_another_sigma_votes_at_its_own_and_may_lend_its_confidence(
    teacher_noise: str, confidence: str
) -> None:
    case = Case(12, teacher=network(5, scale=4.0), teacher_sigma=3 * SIGMA)
    counts, _ = check(case, 4, 2.0, teacher_noise=teacher_noise, confidence=confidence)
    assert len(set(counts)) > 1


def test_the_modes_differ_and_need_a_teacher() -> None:
    case = Case(12, teacher=network(5, scale=4.0), teacher_sigma=3 * SIGMA)
    modes = [(noise, confidence) for noise in ("own", "student") for confidence in ("model", "teacher")]
    losses = {
        method("cat-rs", teacher_noise=noise, confidence=confidence).loss(network(scale=3.0), case.batch())[0].item()
        for noise, confidence in modes
    }
    assert len(losses) == 4
    alone = {
        method("cat-rs", confidence=confidence).loss(network(scale=3.0), Case(12).batch())[0].item()
        for confidence in ("model", "teacher")
    }
    assert len(alone) == 1


def test_one_copy_is_always_all_copies() -> None:
    """As in the authors' code: K is raised to one before it is compared with m. (Without a teacher the target would be
    the answer itself, where the divergence is least and has no direction.)"""
    counts, high = check(Case(6, teacher=network(5)), 1, 1.0, steps=3)
    assert counts == [1] * 6
    assert high > 0


def test_where_every_image_is_wrong_the_easiest_copy_is_learnt() -> None:
    model, case = network(scale=3.0), Case()
    rows = answers(model, case.x, case.noise(3))
    wrong = [
        next(c for c in (0, 1, 2) if c not in {place(row) for row in image}) if len({*map(place, image)}) < 3 else 0
        for image in zip(*rows, strict=True)
    ]
    case = Case(labels=wrong)
    counts, high = check(case, 3, 1.0)
    assert (counts, high) == ([1] * 5, 0)


def test_where_every_copy_is_right_all_are_learnt() -> None:
    logits = 2.0 * torch.eye(3)[[0, 1, 2, 0]].double()
    model = Given(logits.repeat(3, 1))
    _, parts = method("cat-rs", m=3).loss(model, Case(4, labels=[0, 1, 2, 0]).batch())
    assert parts["sure"].item() == 1
    assert parts["low"].item() == pytest.approx(cross_entropy([2.0, 0.0, 0.0], 0))


def test_k_is_binomial() -> None:
    """Half of four samples right: all are accepted for one image in 16, and one or none for five in 16."""
    count = 4000
    rows = torch.eye(3)[[0, 0, 1, 1]].repeat_interleave(count, dim=0)
    case = Case(count, labels=[0] * count)
    _, parts = method("cat-rs", m=4, steps=1).loss(Given(rows), case.batch())
    low, high = binom.interval(1 - 1e-6, count, 1 / 16)
    assert low / count <= parts["sure"].item() <= high / count
    easy, hard = cross_entropy([1.0, 0.0, 0.0], 0), cross_entropy([0.0, 1.0, 0.0], 0)
    expected = sum(binom.pmf(k, 4, 0.5) * (easy * min(2, max(1, k)) + hard * max(0, k - 2)) / 4 for k in range(5))
    assert parts["low"].item() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
def test_moved_noises_keep_their_mean_and_scale(epsilon: float) -> None:
    """What the network is shown last is another noise with the same first two moments, found in eval mode."""
    case, samples, steps = Case(6), 3, 4
    watched = Watched(network(scale=3.0))
    method("cat-rs", m=samples, steps=steps, epsilon=epsilon).loss(watched, case.batch())
    assert watched.modes == [True] + [False] * steps + [True]
    before = case.noise(samples).flatten(0, 1).flatten(1)
    moved = watched.seen[-1].flatten(1) - case.x.repeat(samples, 1, 1, 1).flatten(1)
    torch.testing.assert_close(moved.mean(1), before.mean(1), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(moved.square().mean(1), before.square().mean(1), rtol=1e-9, atol=1e-12)
    assert (moved - before).norm(dim=1).min() > 1e-3


@pytest.mark.parametrize("size", [1e3, 1e5])
def test_sure_answers_leave_loss_and_gradient_finite(size: float) -> None:
    """Divergences of answers that underflow; every second image is wrong for certain."""
    model = Given(size * torch.eye(3)[[0, 1, 2, 0, 1, 2, 0, 1]])
    loss, _ = method("cat-rs", m=2, steps=2).loss(model, Case(4, labels=[0, 2, 2, 1]).batch())
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(model.logits.grad).all()


def test_no_gradient_flows_into_the_targets() -> None:
    """Targets are the model's own votes, but held fixed: with m = 1 and no attack to speak of the term is zero,
    and so is its gradient."""
    model = network()
    case = Case()
    loss, parts = method("cat-rs", m=1, steps=1, epsilon=1e-9, lbd=1e6).loss(model, case.batch())
    assert parts["high"].item() == pytest.approx(0, abs=1e-9)
    loss.backward()
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    method("gaussian").loss(model, case.batch()).backward()
    for gradient, parameter in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-3, atol=1e-3)
