"""Laplace noise certifies L1 radii: -sigma * log(2 (1 - p_A)) (Teng et al. 2020, theorem 1)."""

import math

from smoothctl import Noise, hookimpl


def sample(shape, sigma, draws):
    u = draws.uniform(shape) - 0.5
    return -sigma * u.sign() * (1 - 2 * u.abs()).clamp_min(1e-12).log()


def radius(p_lower, sigma):
    return -sigma * math.log(2 * (1 - p_lower))


@hookimpl
def register_noises():
    return [Noise("laplace", sample, radius, norm="l1", summary="Laplace noise of scale sigma; certifies L1 radii")]
