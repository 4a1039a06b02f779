"""Stability training: the answer to a noisy image should be that to the clean one."""

from __future__ import annotations

import pytest
import torch

from tests.plugins.methods.slow import Case, answers, cross_entropy, hold, mean, method, network, softmax


@pytest.mark.parametrize("lbd", [0.0, 2.0])
def test_it_is_cross_entropy_on_clean_images_and_agreement_with_noisy_ones(lbd: float) -> None:
    """The target moves with the weights too: the differences see it, so the gradient must."""
    model, case = network(), Case()

    def slow() -> float:
        (clean,), (noisy,) = (answers(model, case.x, noise) for noise in (0 * case.noise(1), case.noise(1)))
        losses = []
        for row, under_noise, label in zip(clean, noisy, case.y, strict=True):
            agreement = sum(p * cross_entropy(under_noise, place) for place, p in enumerate(softmax(row)))
            losses.append(cross_entropy(row, label) + lbd * agreement)
        return mean(losses)

    hold(method("stability", lbd=lbd), model, case, slow)


def test_confident_answers_leave_loss_and_gradient_finite() -> None:
    model = network(scale=1e3)
    loss, _ = method("stability").loss(model, Case().batch())
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
