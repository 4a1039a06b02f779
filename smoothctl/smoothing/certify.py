"""CERTIFY: a radius within which the smoothed classifier provably does not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from smoothctl.base import console
from smoothctl.base.errors import UsageError
from smoothctl.base.settings import validated
from smoothctl.hooks.noises import Noise
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import EIGHT_BIT
from smoothctl.smoothing.arithmetic import Arithmetic, is_on_grid, proving
from smoothctl.smoothing.backends import plain
from smoothctl.smoothing.pilot import PRICES
from smoothctl.smoothing.rules import (
    Certificate,
    binary_bound,
    cohen,
    group_sequential,
    multi_bound,
    skipping_misclassified,
    stating,
    two_stage,
)
from smoothctl.smoothing.sampling import Rule, Sampler
from smoothctl.smoothing.sequential import LEAST_ALPHA, plan_radii
from smoothctl.smoothing.settings import CertifySettings

NO_LABEL = -1
RuleMaker = Callable[[int], Rule[Certificate]]
"""From an image's label (which only ``skip_misclassified`` looks at) to a fresh rule."""


def rules_in(arithmetic: Arithmetic, settings: CertifySettings, dimension: int) -> RuleMaker:
    """The stopping rule that settings ask for, with certificates that hold in an arithmetic, for images of
    ``dimension`` pixels."""
    distance = arithmetic.distance(dimension)
    make = rule_maker(settings, arithmetic.noise, arithmetic.sigma, distance)
    return lambda label: stating(make(label), distance, arithmetic.name)


def rule_maker(settings: CertifySettings, noise: Noise, sigma: float, distance: float = 0.0) -> RuleMaker:
    """The stopping rule that settings ask for; raises UsageError if the noise cannot serve it.

    ``distance`` bounds the total variation between the noise that is drawn and its law.
    """
    n0, n, alpha = settings.n0, settings.limit, settings.alpha
    if settings.bound == "multi" and noise.radius_pair is None:
        raise UsageError(f"--bound multi: noise {noise.name} has no radius for a pair of bounds")
    proven = proving(noise, distance)
    bound = (multi_bound if settings.bound == "multi" else binary_bound)(proven, sigma, alpha)

    def plain(label: int) -> Rule[Certificate]:
        return cohen(n0, n, bound)

    def staged(label: int) -> Rule[Certificate]:
        assert settings.budget is not None
        return two_stage(n0, n, bound, PRICES[settings.budget], noise, alpha)

    make: RuleMaker = staged if settings.budget else plain
    if settings.radii:
        if alpha < LEAST_ALPHA:
            raise UsageError(
                f"--radii computes its error probability to {LEAST_ALPHA:g}, so that no n proves anything at "
                f"alpha={alpha:g}; give a larger alpha, or leave --radii out"
            )
        plan = plan_radii(settings.radii, lambda p: proven.radius(p, sigma), alpha, n)
        if plan.out_of_reach:
            named = ", ".join(f"{radius:g}" for radius in plan.out_of_reach)
            told = (
                f"n={n} copies can never prove the radius {named} at sigma={sigma:g} and alpha={alpha:g}; "
                "leave it out, or give a larger n"
            )
            if plan.out_of_reach == plan.radii:
                raise UsageError(told)
            console.warn(told)

        def looking(label: int) -> Rule[Certificate]:
            return group_sequential(n0, plan)

        make = looking
    if settings.skip_misclassified:
        return lambda label: skipping_misclassified(make(label), label)
    return make


def certify(
    model: nn.Module,
    images: Tensor,
    *,
    sigma: float,
    n0: int = 100,
    n: int | None = None,
    alpha: float = 0.001,
    radii: Sequence[float] | None = None,
    budget: str | None = None,
    bound: str = "binary",
    noise: str = "gaussian",
    seed: int = 0,
    batch_size: int = 256,
    device: torch.device | str | None = None,
    indices: Sequence[int] | None = None,
) -> list[Certificate]:
    """Certify images [N,C,H,W] in [0,1] under any module from pixels to logits.

    Without ``radii`` or ``budget`` it is Cohen's rule with n = 100,000. ``radii`` asks only which of
    these radii are proved, and ``budget`` (precise, balanced, fast, draft) chooses n per image; both
    with the same guarantee and far fewer copies. ``indices`` names the images for the noise (0..N-1
    if left out): an image's certificate depends on its index, the seed, the settings and the model,
    not on its neighbours. The model runs on ``device`` (where it already is, if left out) in eval
    mode. 8-bit images (every pixel float32(i) / 255) are certified in exact arithmetic (docs/certify.md), others in
    floating point; ``arithmetic`` of the certificate says which. Raises UsageError for settings out of range and for
    a network whose answers depend on more than their own row, SmoothctlError for logits that are not finite.
    """
    sigma = float(sigma)
    values = {"sigma": sigma, "n0": n0, "n": n, "alpha": alpha, "radii": radii, "budget": budget, "bound": bound}
    settings = validated(CertifySettings, {**values, "seed": seed})
    settings.check()
    kind: Noise = registry().find("noise", noise).value
    sampler: Sampler[Certificate] = tensor_sampler(model, images, kind, sigma, seed, batch_size, device)

    def rule(arithmetic: Arithmetic) -> Callable[[int], Rule[Certificate]]:
        make = rules_in(arithmetic, settings, images[0].numel())
        return lambda index: make(NO_LABEL)

    return run_tensors(sampler, images, indices, rule)


def run_tensors(
    sampler: Sampler[Any],
    images: Tensor,
    indices: Sequence[int] | None,
    rule: Callable[[Arithmetic], Callable[[int], Rule[Any]]],
) -> list[Any]:
    """Decide images at hand, 8-bit ones in exact arithmetic; the outcomes are in their order."""
    places = [int(index) for index in indices] if indices is not None else list(range(len(images)))
    if len(set(places)) < len(places) or len(places) != len(images) or min(places, default=0) < 0:
        raise UsageError("indices must name each image, each with a number of its own from 0")
    held = images.detach().float().cpu()
    groups: dict[int | None, list[tuple[int, Tensor]]] = {}
    for index, x in zip(places, held, strict=True):
        groups.setdefault(EIGHT_BIT if is_on_grid(x, EIGHT_BIT) else None, []).append((index, x))
    decided: dict[int, Any] = {}
    for levels, group in groups.items():
        own = replace(sampler, levels=levels)
        decided |= {item.index: item.outcome for item in own.run(group, rule(own.arithmetic))}
    return [decided[index] for index in places]


def tensor_sampler(
    model: nn.Module,
    images: Tensor,
    noise: Noise,
    sigma: float,
    seed: int,
    batch_size: int,
    device: torch.device | str | None,
) -> Sampler[Any]:
    """A sampler for images at hand; raises UsageError unless they are [N,C,H,W] in [0,1]."""
    if not isinstance(images, Tensor) or not isinstance(model, nn.Module):
        raise UsageError("certify and predict take a torch.nn.Module and a tensor of images [N,C,H,W]")
    if images.ndim != 4 or not images.is_floating_point():
        raise UsageError(f"images must be a float tensor [N,C,H,W], not {tuple(images.shape)} {images.dtype}")
    if len(images) and not (images.min() >= 0 and images.max() <= 1):
        raise UsageError(
            f"images must be pixels in [0,1]; these go from {images.min():g} to {images.max():g}. "
            "Normalising belongs into the model, after the noise"
        )
    if batch_size < 1:
        raise UsageError(f"batch_size must be at least 1 (got {batch_size})")
    if device is None:
        first = next(iter(model.parameters()), None)
        device = first.device if first is not None else torch.device("cpu")
    try:
        model = model.to(device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device {device}: {str(error).splitlines()[0]}") from None
    return Sampler(plain(model), noise, sigma, seed, torch.device(device), batch_size, model=model)
