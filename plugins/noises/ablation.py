"""Pixel ablation: an L0 radius in pixels (Levine and Feizi 2020, "Robustness certificates for sparse adversarial
attacks by randomized ablation", theorem 1).

An image keeps k of its d pixels, drawn evenly, and shows nothing of the others. Sigma is the share of pixels that it
loses, so that, as with other noise, more of it certifies farther: k = (1 - sigma) d, rounded, and at least 1.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING

from smoothctl import Noise, UsageError, hookimpl

if TYPE_CHECKING:
    from torch import Tensor

    from smoothctl import Draws

NOTHING = -0.5
"""What an ablated pixel shows: no pixel has this value, so a network can tell."""
RANKS = 2**62


def kept(pixels: int, sigma: float) -> int:
    return max(1, round((1 - sigma) * pixels))


def sample(shape: tuple[int, ...], sigma: float, draws: Draws) -> Tensor:
    """Masks [N,C,H,W]: 1 where a pixel is kept, in all its channels."""
    if sigma >= 1:
        raise UsageError(f"sigma is the share of pixels that ablation takes, so it is below 1 (got {sigma:g})")
    import torch

    pixels = math.prod(shape[2:])
    first = draws.integers(0, RANKS, (shape[0], pixels)).argsort(dim=1)[:, : kept(pixels, sigma)]
    mask = torch.zeros(shape[0], pixels, device=first.device).scatter_(1, first, 1.0)
    return mask.view(shape[0], 1, *shape[2:]).expand(shape)


def apply(x: Tensor, mask: Tensor, sigma: float) -> Tensor:
    import torch

    return torch.where(mask > 0, x, NOTHING)


def radius(margin: Fraction, pixels: int, sigma: float) -> float:
    """The most pixels r with 1 - C(d-r,k) / C(d,k) < margin: p_A can fall by the chance that one of them is kept.

    Two equal ranks, a chance of d^2 / 2^63 at most, make a draw uneven.
    """
    k, margin = kept(pixels, sigma), margin - Fraction(pixels**2, 2 * RANKS)
    changed, none_kept, ways = 0, 1, 1
    while changed < pixels:
        none_kept, ways = none_kept * (pixels - k - changed), ways * (pixels - changed)
        if (ways - none_kept) * margin.denominator >= margin.numerator * ways:
            break
        changed += 1
    return float(changed)


def for_shape(shape: tuple[int, ...]) -> Noise:
    pixels = math.prod(shape[1:])
    return dataclasses.replace(
        ABLATION, for_shape=None,
        radius=lambda p_lower, sigma: radius(Fraction(p_lower) - Fraction(1, 2), pixels, sigma),
        radius_pair=lambda p_lower, other, sigma: radius((Fraction(p_lower) - Fraction(other)) / 2, pixels, sigma),
    )  # fmt: skip


def unknown(p_lower: float, sigma: float) -> float:
    raise UsageError("a radius of ablation depends on how many pixels an image has")


ABLATION = Noise(
    "ablation", sample, unknown, "l0", radius_pair=lambda p, other, sigma: unknown(p, sigma), apply=apply,
    for_shape=for_shape, whole=True, summary="keeps some pixels only; certifies L0 radii (Levine and Feizi 2020)",
)  # fmt: skip


@hookimpl
def register_noises() -> list[Noise]:
    return [ABLATION]
