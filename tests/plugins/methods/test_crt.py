"""CRT: the distance of the student's outputs from a teacher's."""

from __future__ import annotations

import math

import pytest
import torch

from tests.plugins.methods.slow import Case, answers, cross_entropy, hold, mean, method, network, softmax


@pytest.mark.parametrize("outputs", ["logits", "softmax"])
@pytest.mark.parametrize("weight", [1.0, 0.25, 0.0])
def test_it_is_the_mean_unsquared_distance_mixed_with_cross_entropy(outputs: str, weight: float) -> None:
    student, teacher = network(0), network(1)
    case = Case(teacher=teacher)

    def slow() -> float:
        (own,), (taught,) = answers(student, case.x, case.noise(1)), answers(teacher, case.x, case.noise(1))
        labelled = mean([cross_entropy(row, label) for row, label in zip(own, case.y, strict=True)])
        if outputs == "softmax":
            own, taught = [softmax(row) for row in own], [softmax(row) for row in taught]
        distance = mean([math.dist(first, second) for first, second in zip(own, taught, strict=True)])
        return weight * distance + (1 - weight) * labelled

    parts = hold(method("crt", outputs=outputs, weight=weight), student, case, slow)
    assert set(parts) == ({"transfer"} if weight == 1 else {"transfer", "cross_entropy"})


def test_a_student_equal_to_its_teacher_has_finite_gradients() -> None:
    student = network(0)
    loss, _ = method("crt").loss(student, Case(teacher=network(0)).batch())
    loss.backward()
    assert loss.item() == 0.0
    assert all(torch.isfinite(parameter.grad).all() for parameter in student.parameters())
