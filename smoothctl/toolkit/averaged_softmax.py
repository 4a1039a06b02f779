"""The averaged softmax: the mean of class probabilities over noise samples of each image."""

from __future__ import annotations

import math

from torch import Tensor


def log_averaged_softmax(logits: Tensor, samples: int) -> Tensor:
    """Logarithm of the soft smoothed classifier's probabilities, estimated from ``samples`` noise samples.

    ``logits`` are [samples*B,K], all images sample by sample; the result is [B,K] (Salman et al. 2019, equation 6).
    It is computed from logarithms, so that probabilities too small for float32 keep their gradients.
    """
    stacked = logits.log_softmax(dim=1).unflatten(0, (samples, -1))
    vote: Tensor = stacked.logsumexp(dim=0) - math.log(samples)
    return vote
