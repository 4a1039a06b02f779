"""What a number of images can tell of certified accuracy, before they are certified."""

from __future__ import annotations

import math
from dataclasses import dataclass

ALPHA, POWER, FINE = 0.05, 0.8, 0.01


@dataclass(frozen=True)
class Resolution:
    """Fractions, at worst, which is about one half. ``interval``: half the exact 95 % interval of an accuracy;
    ``difference``: what two logs of other images may differ by so that a test at 5 % finds it with a power of 80 %;
    ``images_for_a_point``: images whose interval is a hundredth to each side."""

    interval: float
    difference: float
    images_for_a_point: int

    def __str__(self) -> str:
        return (
            f"certified accuracy within {100 * self.interval:.1f} points (95 %, at worst; {self.images_for_a_point:,} "
            f"images: within 1), and a difference of {100 * self.difference:.1f} points to other images with power 80 %"
        )


def resolution(images: int) -> Resolution:
    """What so many images resolve, by Clopper and Pearson's interval and Cohen's effect size (1988, section 6.2)."""
    from statsmodels.stats.power import NormalIndPower
    from statsmodels.stats.proportion import proportion_confint, samplesize_confint_proportion

    low, high = proportion_confint(images // 2, images, alpha=ALPHA, method="beta")
    effect = NormalIndPower().solve_power(nobs1=images, alpha=ALPHA, power=POWER)
    # Accuracies (1 + d) / 2 and (1 - d) / 2 have the effect size 2 asin(d).
    difference = math.sin(min(float(effect), math.pi) / 2)
    enough = math.ceil(samplesize_confint_proportion(0.5, FINE, alpha=ALPHA))
    return Resolution(float(high - low) / 2, difference, enough)
