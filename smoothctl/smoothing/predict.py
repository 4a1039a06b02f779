"""PREDICT: the smoothed classifier's class, or abstention, with a bounded chance of error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import validated
from smoothctl.base.streams import Stream
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.hooks.rules import Request, Rule, Votes
from smoothctl.smoothing.arithmetic import Arithmetic
from smoothctl.smoothing.bounds import require_n_to_predict, top_two_p_value
from smoothctl.smoothing.certify import find_noise, run_tensors, tensor_sampler
from smoothctl.smoothing.enumeration import Enumeration, leading
from smoothctl.smoothing.sampling import Sampler
from smoothctl.smoothing.settings import PredictSettings


@dataclass(frozen=True)
class Prediction:
    """top: the class with most votes (the lowest of equals); predict: that class, or ABSTAIN;
    p_value: of the test that the two leading classes are equally likely; votes: counts [K];
    arithmetic: in which noise was added, ``exact, grid 1/255`` or ``float``."""

    top: int
    predict: int
    p_value: float
    n: int
    votes: Votes
    arithmetic: str = "float"


def majority(n: int, alpha: float) -> Rule[Prediction]:
    """PREDICT of Cohen et al. 2019 (section 3.2.1): abstain unless the two-sided test is significant."""
    votes = yield Request(Stream.PREDICT, n)
    second, first = np.sort(votes)[-2:] if len(votes) > 1 else (0, votes[0])
    top, p_value = int(votes.argmax()), top_two_p_value(first, second)
    return Prediction(top, top if p_value <= alpha else ABSTAIN, p_value, n, votes)


def majority_in(arithmetic: Arithmetic, n: int, alpha: float, dimension: int) -> Rule[Prediction]:
    """PREDICT that holds in an arithmetic: n samples off by a distance each cost n times that of alpha.

    Raises UsageError if nothing is left of alpha.
    """
    left = alpha - n * arithmetic.distance(dimension)
    if left < 2.0 ** (1 - n):
        raise UsageError(f"alpha={alpha:g} is below what {n} samples can tell in exact arithmetic; give a larger alpha")
    prediction = yield from majority(n, left)
    return replace(prediction, arithmetic=arithmetic.name)


def predict_all(count: int, arithmetic: str) -> Rule[Prediction]:
    """The class that most of all ``count`` values give; an abstention where two lead."""
    votes = yield Request(Stream.PREDICT, count)
    top, first, second = leading(votes)
    return Prediction(top, ABSTAIN if first == second else top, float(first == second), count, votes, arithmetic)


@dataclass(frozen=True)
class MajorityVote:
    """How the images of a job are predicted: by n votes each."""

    n: int
    alpha: float
    fixed_n: ClassVar[bool] = True
    norm: ClassVar[None] = None
    certifies: ClassVar[bool] = False

    @property
    def most_samples(self) -> int:
        """Forward passes per image."""
        return self.n

    likely_samples = most_samples

    def record(self) -> dict[str, Any]:
        """What a log's settings say of it."""
        return {"rule": "majority", "n": self.n}

    def about(self) -> dict[str, Any]:
        """Nothing that its settings do not say."""
        return {}

    def rules(self, arithmetic: Arithmetic, dimension: int) -> Callable[[int], Rule[Prediction]]:
        """From an image's label, which plays no part, to a fresh rule."""
        if arithmetic.values:
            return lambda label: self.over(arithmetic, dimension).rule()
        return lambda label: majority_in(arithmetic, self.n, self.alpha, dimension)

    def over(self, arithmetic: Arithmetic, dimension: int) -> Enumeration:
        """The vote of a noise of which every value is evaluated, so that n and alpha play no part."""
        return Enumeration(arithmetic.values, False, lambda: predict_all(arithmetic.values, arithmetic.name))


def resolve_vote(settings: PredictSettings) -> MajorityVote:
    """The vote that settings ask for; raises UsageError for an n that can never return a class at this alpha."""
    require_n_to_predict(settings.n, settings.alpha)
    return MajorityVote(settings.n, settings.alpha)


def predict(
    model: nn.Module,
    images: Tensor,
    *,
    sigma: float,
    n: int = 1000,
    alpha: float = 0.001,
    noise: str | None = None,
    seed: int = 0,
    batch_size: int = 256,
    device: torch.device | str | None = None,
    indices: Sequence[int] | None = None,
) -> list[Prediction]:
    """Predict images [N,C,H,W] in [0,1]; the arguments are those of :func:`smoothctl.certify`.

    With probability at least 1-alpha, a class that is returned is the smoothed classifier's.
    """
    sigma = float(sigma)
    vote = resolve_vote(validated(PredictSettings, {"sigma": sigma, "n": n, "alpha": alpha, "seed": seed}))
    sampler: Sampler[Prediction] = tensor_sampler(model, images, find_noise(noise), sigma, seed, batch_size, device)
    return run_tensors(sampler, images, indices, lambda arithmetic: vote.rules(arithmetic, images[0].numel()))
