"""The soft vote: the mean of class probabilities over noisy copies of each image."""

from __future__ import annotations

import math

from torch import Tensor


def soft_vote(logits: Tensor, copies: int) -> Tensor:
    """Logarithm of the soft smoothed classifier's probabilities, estimated from ``copies`` noisy copies.

    ``logits`` are [copies*B,K], all images copy by copy; the result is [B,K] (Salman et al. 2019, equation 6).
    It is computed from logarithms, so that probabilities too small for float32 keep their gradients.
    """
    stacked = logits.log_softmax(dim=1).unflatten(0, (copies, -1))
    vote: Tensor = stacked.logsumexp(dim=0) - math.log(copies)
    return vote
