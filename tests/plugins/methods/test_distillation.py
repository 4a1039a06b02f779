"""Distillation with temperature, and the matching of smoothed answers."""

from __future__ import annotations

import pytest

from tests.plugins.methods.slow import (
    Case,
    answers,
    cross_entropy,
    divergence,
    hold,
    mean,
    method,
    network,
    softmax,
    vote,
)


@pytest.mark.parametrize(("temperature", "weight"), [(4.0, 0.9), (1.0, 1.0), (0.5, 0.3), (2.0, 0.0)])
def test_kd_is_hintons_loss_under_noise(temperature: float, weight: float) -> None:
    student, teacher = network(0), network(1)
    case = Case(teacher=teacher)

    def slow() -> float:
        (own,), (taught,) = answers(student, case.x, case.noise(1)), answers(teacher, case.x, case.noise(1))
        losses = []
        for row, target, label in zip(own, taught, case.y, strict=True):
            soft, wanted = (softmax([value / temperature for value in values]) for values in (row, target))
            distilled = temperature**2 * divergence(wanted, soft)
            losses.append(weight * distilled + (1 - weight) * cross_entropy(row, label))
        return mean(losses)

    assert set(hold(method("kd", temperature=temperature, weight=weight), student, case, slow)) == {
        "distillation",
        "cross_entropy",
    }


@pytest.mark.parametrize("samples", [1, 3])
def test_crt_smoothed_is_the_divergence_of_soft_votes(samples: int) -> None:
    student, teacher = network(0), network(1)
    case = Case(teacher=teacher)

    def slow() -> float:
        own, taught = (answers(net, case.x, case.noise(samples)) for net in (student, teacher))
        pairs = zip(zip(*own, strict=True), zip(*taught, strict=True), strict=True)
        return mean([divergence(vote(wanted), vote(rows)) for rows, wanted in pairs])

    hold(method("crt-smoothed", m=samples), student, case, slow)
