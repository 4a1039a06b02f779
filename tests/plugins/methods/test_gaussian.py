"""Gaussian augmentation: cross-entropy on one noise sample of each image."""

from __future__ import annotations

from tests.plugins.methods.slow import Case, answers, cross_entropy, hold, mean, method, network


def test_it_is_cross_entropy_on_one_noisy_copy() -> None:
    model, case = network(), Case()

    def slow() -> float:
        (rows,) = answers(model, case.x, case.noise(1))
        return mean([cross_entropy(row, label) for row, label in zip(rows, case.y, strict=True)])

    hold(method("gaussian"), model, case, slow)
