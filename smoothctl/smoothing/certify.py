"""CERTIFY: a radius within which the smoothed classifier provably does not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from smoothctl.base.errors import UsageError
from smoothctl.base.settings import validated
from smoothctl.hooks.defaults import NOISE
from smoothctl.hooks.noises import Noise
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import Certificate, Rule
from smoothctl.images.datasets import EIGHT_BIT
from smoothctl.smoothing.arithmetic import Arithmetic, is_on_grid
from smoothctl.smoothing.backends import plain
from smoothctl.smoothing.procedure import NO_LABEL, resolve
from smoothctl.smoothing.rules import rule_options
from smoothctl.smoothing.sampling import Sampler
from smoothctl.smoothing.settings import CertifySettings


def certify(
    model: nn.Module,
    images: Tensor,
    *,
    sigma: float,
    n0: int = 100,
    n: int | None = None,
    alpha: float = 0.001,
    bound: str = "binary",
    rule: str | None = None,
    noise: str | None = None,
    norm: str | None = None,
    seed: int = 0,
    batch_size: int = 256,
    device: torch.device | str | None = None,
    indices: Sequence[int] | None = None,
    **options: Any,
) -> list[Certificate]:
    """Certify images [N,C,H,W] in [0,1] under any module from pixels to logits.

    By default it is the rule of Cohen et al. 2019 with n = 100,000. Another stopping rule is chosen by its name or by
    any of its ``options``: ``radii=[0.25, 0.5]`` asks only which of these radii are proved, ``budget="fast"`` (or
    precise, balanced, draft) chooses n per image; with the same guarantee and far fewer noise samples. ``noise``
    is Gaussian if left out; ``norm`` converts its radii to l1, l2 or linf. ``indices`` names the images for the noise
    (0..N-1 if left out): an image's certificate depends on its index, the seed, the settings and the model,
    not on its neighbours. The model runs on ``device`` (where it already is, if left out) in eval
    mode. 8-bit images (every pixel float32(i) / 255) are certified in exact arithmetic (docs/certify.md), others in
    floating point; ``arithmetic`` of the certificate says which. Raises UsageError for settings out of range and for
    a network whose answers depend on more than their own row, SmoothctlError for logits that are not finite.
    """
    sigma = float(sigma)
    values = {"sigma": sigma, "n0": n0, "n": n, "alpha": alpha, "bound": bound, "rule": rule, "norm": norm}
    if unknown := sorted(set(options) - set(rule_options().model_fields)):
        raise TypeError(f"certify() got an unexpected keyword argument {unknown[0]!r}")
    procedure = resolve(validated(CertifySettings, {**values, "seed": seed}), options)
    sampler: Sampler[Certificate] = tensor_sampler(model, images, find_noise(noise), sigma, seed, batch_size, device)

    def rules(arithmetic: Arithmetic) -> Callable[[int], Rule[Certificate]]:
        make = procedure.rules(arithmetic, images[0].numel())
        return lambda index: make(NO_LABEL)

    return run_tensors(sampler, images, indices, rules)


def find_noise(name: str | None) -> Noise:
    """The noise of a name, or the default."""
    found: Noise = registry().find("noise", name or NOISE).value
    return found


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
    return Sampler(plain(model), noise.at(images.shape[1:]), sigma, seed, torch.device(device), batch_size, model=model)
