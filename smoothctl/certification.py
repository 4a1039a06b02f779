"""CERTIFY: a radius within which the smoothed classifier provably does not change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from smoothctl.api import ABSTAIN, Noise
from smoothctl.bounds import clopper_pearson_lower
from smoothctl.config import CertifySettings, validated
from smoothctl.draws import Stream
from smoothctl.errors import UsageError
from smoothctl.plugins import registry
from smoothctl.sampling import Request, Rule, Sampler, Votes


@dataclass(frozen=True)
class Certificate:
    """What was proved for one image, with probability at least 1-alpha over the noise.

    top: the class selected; predict: the class certified, or ABSTAIN; p_lower: lower bound on
    p_A; radius: in the noise's norm, in units of pixels in [0,1], 0 when abstaining; n: copies
    used for estimation; votes, selection: counts per class of both samples.
    """

    top: int
    predict: int
    p_lower: float
    radius: float
    n: int
    votes: Votes
    selection: Votes


def cohen(noise: Noise, sigma: float, n0: int, n: int, alpha: float) -> Rule[Certificate]:
    """CERTIFY of Cohen et al. 2019 (section 3.2.2): select on n0 copies, estimate on n fresh ones."""
    selection = yield Request(Stream.SELECT, n0)
    top = int(selection.argmax())
    votes = yield Request(Stream.ESTIMATE, n)
    p_lower = clopper_pearson_lower(votes[top], n, alpha)
    if p_lower < 0.5:
        return Certificate(top, ABSTAIN, p_lower, 0.0, n, votes, selection)
    return Certificate(top, top, p_lower, noise.radius(p_lower, sigma), n, votes, selection)


def certify(
    model: nn.Module,
    images: Tensor,
    *,
    sigma: float,
    n0: int = 100,
    n: int = 100_000,
    alpha: float = 0.001,
    noise: str = "gaussian",
    seed: int = 0,
    batch_size: int = 256,
    device: torch.device | str | None = None,
    indices: Sequence[int] | None = None,
) -> list[Certificate]:
    """Certify images [N,C,H,W] in [0,1] under any module from pixels to logits.

    ``indices`` names the images for the noise (0..N-1 if left out): an image's certificate depends
    on its index, seed, n0, n, sigma and the model, not on its neighbours. The model runs on
    ``device`` (where it already is, if left out) in eval mode. Raises UsageError for settings out
    of range and SmoothctlError for logits that are not finite.
    """
    settings = validated(CertifySettings, {"sigma": sigma, "n0": n0, "n": n, "alpha": alpha, "seed": seed}, prefix="")
    settings.check_n()
    kind: Noise = registry().find("noise", noise).value
    sampler: Sampler[Certificate] = tensor_sampler(model, images, kind, sigma, seed, batch_size, device)
    numbered = zip(indices if indices is not None else range(len(images)), images, strict=True)
    decided = sampler.run(numbered, lambda: cohen(kind, sigma, n0, n, alpha))
    by_index = {item.index: item.outcome for item in decided}
    return [by_index[index] for index in (indices if indices is not None else range(len(images)))]


def tensor_sampler(
    model: nn.Module,
    images: Tensor,
    noise: Noise,
    sigma: float,
    seed: int,
    batch_size: int,
    device: torch.device | str | None,
) -> Sampler:
    """A sampler for images at hand; raises UsageError unless they are [N,C,H,W] in [0,1]."""
    if images.ndim != 4 or not images.is_floating_point():
        raise UsageError(f"images must be a float tensor [N,C,H,W], not {tuple(images.shape)} {images.dtype}")
    if len(images) and not (images.min() >= 0 and images.max() <= 1):
        raise UsageError(
            f"images must be pixels in [0,1]; these go from {images.min():g} to {images.max():g}. "
            "Normalising belongs into the model, after the noise"
        )
    if device is None:
        first = next(iter(model.parameters()), None)
        device = first.device if first is not None else torch.device("cpu")
    return Sampler(model.to(device), noise, sigma, seed, torch.device(device), batch_size)
