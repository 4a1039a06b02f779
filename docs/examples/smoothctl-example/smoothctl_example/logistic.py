"""Logistic noise certifies L1 radii: its density is log-concave, so the worst case is a half-space along one axis."""

import math

from smoothctl import Noise, hookimpl


def sample(shape, sigma, draws):
    return sigma * draws.uniform(shape).logit(eps=1e-7)


def radius(p_lower, sigma):
    return sigma * math.log(p_lower / (1 - p_lower)) if p_lower < 1 else math.inf


def cdf(x, sigma):
    import mpmath

    return 1 / (1 + mpmath.exp(-x / sigma))


@hookimpl
def register_noises():
    return [Noise("logistic", sample, radius, "l1", cdf=cdf, summary="logistic noise; certifies L1 radii")]
