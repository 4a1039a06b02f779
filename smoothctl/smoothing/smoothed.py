"""The smoothed classifier as a module, for attack libraries and one's own programs."""

from __future__ import annotations

from torch import Tensor, nn

from smoothctl.base.draws import Draws
from smoothctl.base.errors import UsageError
from smoothctl.base.streams import Stream
from smoothctl.hooks.noises import Noise
from smoothctl.hooks.rules import Certificate
from smoothctl.smoothing.certify import certify, find_noise
from smoothctl.smoothing.predict import Prediction, predict
from smoothctl.toolkit.averaged_softmax import log_averaged_softmax


class SmoothedClassifier(nn.Module):
    """The soft smoothed classifier of Salman et al. 2019 (equation 6), differentiable.

    ``forward(x)`` gives the logarithm of the mean, over ``samples`` fresh noise samples, of the
    base classifier's class probabilities [B,K]: logits whose softmax is that mean, and whose
    cross-entropy is the loss that SmoothAdv attacks. ``certify`` and ``predict`` speak of the
    hard smoothed classifier, by votes.
    """

    def __init__(self, base: nn.Module, sigma: float, noise: str | None = None, samples: int = 16, seed: int = 0):
        super().__init__()
        if not sigma > 0 or samples < 1:
            raise UsageError(f"sigma must be above 0 and samples at least 1 (got {sigma} and {samples})")
        self.base, self.sigma, self.samples, self.seed = base, sigma, samples, seed
        self._noise: Noise = find_noise(noise)
        self._calls = 0

    def forward(self, x: Tensor) -> Tensor:
        """Log-probabilities [B,K] of images x [B,C,H,W] in [0,1]."""
        draws = Draws(self.seed, self._calls, Stream.EVALUATE, device=x.device)
        self._calls += 1
        drawn = self._noise.sample((self.samples * len(x), *x.shape[1:]), self.sigma, draws)
        noisy = self._noise.noisy(x.repeat(self.samples, 1, 1, 1), drawn, self.sigma)
        return log_averaged_softmax(self.base(noisy), self.samples)

    def certify(self, images: Tensor, **settings: object) -> list[Certificate]:
        """Certify images; see :func:`smoothctl.certify`."""
        return certify(self.base, images, sigma=self.sigma, noise=self._noise.name, **{"seed": self.seed, **settings})  # type: ignore[arg-type]

    def predict(self, images: Tensor, **settings: object) -> list[Prediction]:
        """Predict images; see :func:`smoothctl.predict`."""
        return predict(self.base, images, sigma=self.sigma, noise=self._noise.name, **{"seed": self.seed, **settings})  # type: ignore[arg-type]
