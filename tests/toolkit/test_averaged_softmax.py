"""The averaged softmax: the logarithm of the mean of probabilities."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from smoothctl import log_averaged_softmax


@given(st.integers(1, 5), st.integers(1, 4), st.integers(2, 6), st.floats(0, 30), st.integers(0, 2**31))
def test_it_is_the_logarithm_of_the_mean_of_probabilities(
    samples: int, images: int, classes: int, scale: float, seed: int
) -> None:
    """Copy by copy: the logits of an image's samples lie B rows apart."""
    logits = scale * torch.randn(samples * images, classes, generator=torch.Generator().manual_seed(seed)).double()
    found = log_averaged_softmax(logits, samples)
    assert found.shape == (images, classes)
    for image in range(images):
        rows = [logits[copy * images + image].numpy() for copy in range(samples)]
        mean = sum(softmax(row) for row in rows) / samples
        assert found[image].exp().numpy() == pytest.approx(mean, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_what_underflows_keeps_its_logarithm_and_gradient(size: float) -> None:
    """In float32 exp(-1000) is zero, and clamping it would stop its gradient."""
    logits = torch.tensor([[size, 0.0, 0.0], [size, 0.0, -size]], requires_grad=True)
    vote = log_averaged_softmax(logits, 2)
    # (exp(-size) + exp(-size)) / 2, and (exp(-size) + exp(-2 size)) / 2
    assert vote[0].tolist() == pytest.approx([0.0, -size, -size - math.log(2)], rel=1e-6)
    (gradient,) = torch.autograd.grad(vote[0, 1], logits)
    assert gradient.tolist() == [pytest.approx([-0.5, 0.5, 0.0], rel=0.01)] * 2


def test_one_copy_is_log_softmax() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(log_averaged_softmax(logits, 1), logits.log_softmax(dim=1))
