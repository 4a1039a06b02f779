"""A noise is held to the law and the radius that it declares."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import torch
from numpy.typing import NDArray

from smoothctl.base.draws import Draws
from smoothctl.hooks.noises import Noise
from smoothctl.smoothing.arithmetic import grid_law
from smoothctl.smoothing.bounds import clopper_pearson_lower

SAMPLES = 100_000
DIMENSION = 4
ALPHA = 1e-7
"""The probability at which a check fails by chance, about."""
KOLMOGOROV = 3.0
"""P(sqrt(n) * largest difference of distribution functions > 3) is 3e-8."""
SIGMAS = (0.25, 1.0)
SHARES = (0.5, 0.9)
SIDES = (6, 6)
PIXEL_SAMPLES = 20_000
DUAL = {"l1": np.inf, "l2": 2, "linf": 1}


def check_noise(noise: Noise, seed: int = 0) -> None:
    """Hold ``sample`` to ``cdf`` and to ``radius``, at two scales; raise AssertionError with what does not fit.

    A noise that is not added is held to its radius in pixels (L0) or in L1, on images of 6 x 6 pixels, and one of which
    all values are evaluated to what is certain.
    """
    if noise.apply is not None:
        for sigma in SHARES:
            check_keys(noise, sigma, seed)
            check_told_apart(noise, sigma, seed)
            if noise.values is not None:
                check_values(noise, sigma, seed)
        return
    for sigma in SIGMAS:
        drawn = draw(noise, sigma, seed)
        check_keys(noise, sigma, seed)
        if noise.cdf is not None:
            check_law(noise, sigma, drawn)
            check_integers(noise, sigma, seed)
        check_coordinates(noise, sigma, drawn)
        check_radius(noise, sigma, drawn)


def draw(noise: Noise, sigma: float, seed: int = 0) -> NDArray[np.float64]:
    """Noise [SAMPLES, DIMENSION] as a certificate would draw it for images 1 x 2 x 2."""
    shape = (SAMPLES, 1, 2, DIMENSION // 2)
    sample = noise.sample(shape, sigma, Draws(seed, 0))
    assert tuple(sample.shape) == shape, f"{noise.name}: sample gives shape {tuple(sample.shape)}, not {shape}"
    assert sample.isfinite().all(), f"{noise.name}: sample gives numbers that are not finite"
    return np.asarray(sample.reshape(SAMPLES, DIMENSION).double().numpy())


def check_keys(noise: Noise, sigma: float, seed: int = 0) -> None:
    """The same key gives the same noise, another key another."""
    first, again, other = (noise.sample((10, 1, 2, 2), sigma, Draws(seed, key)) for key in (1, 1, 2))
    assert first.equal(again), f"{noise.name}: the same draws give other noise the second time"
    assert not first.equal(other), f"{noise.name}: other draws give the same noise"


def check_law(noise: Noise, sigma: float, drawn: NDArray[np.float64]) -> None:
    """Each coordinate follows ``cdf`` (Kolmogorov and Smirnov)."""
    for place in range(drawn.shape[1]):
        ordered = np.sort(drawn[:, place])
        chosen = ordered[:: max(1, len(ordered) // 200)]
        declared = _declared(noise, sigma, chosen)
        shares = np.searchsorted(ordered, chosen, side="right") / len(ordered)
        difference = float(np.abs(shares - declared).max())
        assert difference <= KOLMOGOROV / np.sqrt(len(ordered)), (
            f"{noise.name}: at sigma {sigma:g} sample does not follow cdf (they differ by {difference:.3g})"
        )


def check_integers(noise: Noise, sigma: float, seed: int = 0) -> None:
    """The integers of exact arithmetic follow ``cdf`` too, which takes a law that a grid can hold."""
    law = grid_law(noise, sigma, 255)
    assert law is not None, f"{noise.name}: cdf gives no law on the 8-bit grid at sigma {sigma:g}"
    drawn = np.sort(Draws(seed, 3).ranks(law, (SAMPLES,)).numpy())
    places = np.unique(drawn[:: SAMPLES // 200])
    declared = _declared(noise, sigma, (places + 0.5) / 255)
    difference = float(np.abs(np.searchsorted(drawn, places, side="right") / SAMPLES - declared).max())
    assert difference <= KOLMOGOROV / np.sqrt(SAMPLES), f"{noise.name}: integers do not follow cdf ({difference:.3g})"


def check_coordinates(noise: Noise, sigma: float, drawn: NDArray[np.float64]) -> None:
    """Samples are independent of each other: ranks of a sample and of the next one are not correlated.

    So are coordinates of a noise that states a ``cdf``, by which the engine draws them one by one.
    """
    ranks = drawn.argsort(axis=0).argsort(axis=0) / len(drawn) - 0.5
    limit = 5.5 / np.sqrt(len(drawn)) / 12
    for place in range(drawn.shape[1]):
        follow = float(np.mean(ranks[1:, place] * ranks[:-1, place]))
        assert abs(follow) < limit, f"{noise.name}: a sample depends on the one before it"
        if noise.cdf is not None:
            near = float(np.mean(ranks[:, place] * ranks[:, place - 1]))
            assert abs(near) < limit, f"{noise.name}: coordinates depend on each other, so cdf must be left out"


def check_radius(noise: Noise, sigma: float, drawn: NDArray[np.float64]) -> None:
    """No half-space refutes ``radius``: classes w.e <= t and w.e > t lie t / |w|_dual apart, whatever p_A is."""
    directions = [np.eye(DIMENSION)[0], np.ones(DIMENSION), np.array([1.0, -2.0, 3.0, 0.5])]
    for direction in directions:
        along = np.sort(drawn @ direction)
        # The median may be off by so much in the direction that makes the distance too small.
        middle = along[len(along) // 2 - int(2.7 * np.sqrt(len(along)))]
        for share in (0.55, 0.7, 0.9, 0.99, 0.999):
            edge = along[int(share * len(along)) - 1]
            distance = (edge - middle) / np.linalg.norm(direction, DUAL[noise.norm])
            p_lower = clopper_pearson_lower(int(share * len(along)), len(along), ALPHA)
            radius = noise.radius(p_lower, sigma) if p_lower >= 0.5 else 0.0
            assert radius <= distance, (
                f"{noise.name}: at sigma {sigma:g} a half-space with p_A = {share:g} has its edge at {distance:.4g}, "
                f"radius says {radius:.4g}: sample is weaker than radius assumes"
            )


def check_told_apart(noise: Noise, sigma: float, seed: int = 0) -> None:
    """No images that differ by ``radius`` can be told apart so often that p_A may fall to 1/2."""
    assert noise.norm in ("l0", "l1"), (
        f"{noise.name}: of noise that is not added, only radii in pixels (l0) and in l1 can be checked"
    )
    shape = (2, *SIDES)
    own = noise.at(shape)
    drawn = noise.sample((PIXEL_SAMPLES, *shape), sigma, Draws(seed, 0))
    for p in (0.55, 0.75, 0.9, 0.99, 1.0):
        radius = own.radius(p, sigma)
        x, other = _pair(noise.norm, radius, shape, seed)
        noisy, changed_too = (noise.noisy(image, drawn, sigma) for image in (x, other))
        assert noisy.shape == drawn.shape, f"{noise.name}: apply gives shape {tuple(noisy.shape)}"
        told = int((noisy != changed_too).flatten(1).any(1).sum())
        least = clopper_pearson_lower(told, PIXEL_SAMPLES, ALPHA)
        assert p - least > 0.5 or torch.equal(x, other) or (noise.norm == "l1" and p - least >= 0.5), (
            f"{noise.name}: at sigma {sigma:g} images that differ by {radius:g} in {noise.norm} are told apart in "
            f"{told} of {PIXEL_SAMPLES} draws, so p_A = {p:g} does not prove that radius"
        )


def _pair(norm: str, radius: float, shape: tuple[int, ...], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two images [C,H,W] that differ by a radius, or by as much of it as there is room for, in a few random pixels."""
    x, order = torch.zeros(shape), np.random.default_rng(seed).permutation(math.prod(SIDES))
    other = x.clone()
    if norm == "l0":
        other.flatten(1)[:, torch.from_numpy(order[: int(radius)])] = 1.0
        return x, other
    left = radius
    for place in order:
        other.view(-1)[place] = min(left, 1.0)
        left -= min(left, 1.0)
    return x, other


def check_values(noise: Noise, sigma: float, seed: int = 0, levels: int = 16) -> None:
    """What ``values`` says is certain: images within the radius are told apart by no more values than it allows."""
    values = noise.values
    assert values is not None
    count, shape = values.count(sigma, levels), (2, *SIDES)
    parts = [values.part((1, *shape), sigma, levels, start, Draws(seed)) for start in range(count)]
    whole = values.part((count, *shape), sigma, levels, 0, Draws(seed))
    assert torch.equal(torch.cat(parts), whole), f"{noise.name}: part gives other values from another start"
    draws = np.random.default_rng(seed)
    for second in range(0, count // 2, max(1, count // 20)):
        first = count - second
        radius = values.radius(first, second, sigma, levels)
        steps = round(radius * levels)
        x = torch.from_numpy(draws.integers(0, levels // 2, shape))
        moved = torch.from_numpy(draws.multinomial(steps, np.ones(x.numel()) / x.numel())).view(shape)
        images = [image.clamp(max=levels).float() / levels for image in (x, x + moved)]
        noisy = [values.apply(image, whole, sigma, levels) for image in images]
        told = int((noisy[0] != noisy[1]).flatten(1).any(1).sum())
        assert radius <= 0 or first - told > second + told, (
            f"{noise.name}: at sigma {sigma:g} {told} of {count} values tell images apart that differ by {radius:g}, "
            f"so {first} votes against {second} do not make that radius certain"
        )


def _declared(noise: Noise, sigma: float, places: NDArray[np.float64]) -> NDArray[np.float64]:
    assert noise.cdf is not None
    return np.array([float(noise.cdf(mpmath.mpf(float(place)), sigma)) for place in places])
