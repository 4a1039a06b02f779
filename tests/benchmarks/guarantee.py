"""How often certification and prediction are wrong at worst: exact enumeration through the real generators.

python -m tests.benchmarks.guarantee [--long]      violation / alpha of every rule, the largest last

smoothctl/testing/rules.py says how it is computed. A number above 1 refutes the rule.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np

from smoothctl.hooks.noises import ABSTAIN
from smoothctl.hooks.registry import registry
from smoothctl.smoothing.predict import majority
from smoothctl.smoothing.procedure import Procedure
from smoothctl.testing.rules import (
    SIGMA,
    Claim,
    Claims,
    Counts,
    compositions,
    enumerate_claims,
    multinomial,
    probability,
    procedures,
    quotient,
    violation,
    worst,
)
from tests.procedures import procedure

GAUSSIAN = registry().find("noise", "gaussian").value


def every_rule(n0: int, n: int, n_interim: int) -> dict[str, Procedure]:
    """Every stopping rule that is registered, small enough to enumerate: smaller for one with interim analyses."""
    found: dict[str, Procedure] = {}
    for entry in registry().all("rule"):
        interim = entry.value.saving > 1 and not entry.value.pilot
        found |= procedures(entry.value, n0, n_interim if interim else n)
    return {**found, "skip misclassified": procedure(n0=n0, n=n, alpha=0.05, skip_misclassified=True)}


def audit_multi(n0: int, n: int, alpha: float, grid: int) -> tuple[float, tuple[float, ...]]:
    """The same with three classes and --bound multi, over a grid of probabilities and points beside ties."""
    make = procedure(n0=n0, n=n, alpha=alpha, bound="multi").begin(GAUSSIAN, SIGMA)
    claims = enumerate_claims(lambda: make(-1), 3)
    largest, where = Fraction(0), (1.0, 0.0, 0.0)
    for p in [tuple(Fraction(part, grid) for part in counts) for counts in compositions(grid, 3)]:
        false: Counter[Counts] = Counter()
        for (predict, radius), ways in claims.ways.items():
            if radius > true_radius(p, predict):
                false.update(ways)
        if false and (chance := probability(false, p)) > largest:
            largest, where = chance, tuple(map(float, p))
    return quotient(largest, alpha), where


def true_radius(p: tuple[Fraction, ...], own: int) -> float:
    """sigma / 2 (Phi^-1(p_c) - Phi^-1(the largest other)), rounded up; negative where another class leads."""
    from scipy.special import ndtri

    other = max(part for place, part in enumerate(p) if place != own)
    radius = SIGMA / 2 * float(ndtri(float(p[own])) - ndtri(float(other)))
    return radius if math.isnan(radius) or radius < 0 else radius * (1 + 1e-13)


def audit_predict(n: int, alpha: float, grid: int) -> tuple[float, tuple[float, ...]]:
    """PREDICT with three classes: the probability of a class that another one leads or ties with."""
    wrong: dict[int, Counter[Counts]] = defaultdict(Counter)
    for counts in compositions(n, 3):
        rule = majority(n, alpha)
        next(rule)
        try:
            rule.send(np.array(counts, np.int64))
        except StopIteration as stop:
            if stop.value.predict != ABSTAIN:
                wrong[stop.value.predict][counts] += multinomial(counts)
    largest, where = Fraction(0), (1.0, 0.0, 0.0)
    for counts in compositions(grid, 3):
        p = tuple(Fraction(part, grid) for part in counts)
        if p[0] == max(p):
            false = wrong[1] + wrong[2]
            if (chance := probability(false, p)) > largest:
                largest, where = chance, tuple(map(float, p))
    return quotient(largest, alpha), where


def audit_what_if(n: int, alpha: float, other: float) -> tuple[float, float]:
    """``report --what-if alpha`` on every log of one image that CERTIFY can write."""
    from smoothctl.reporting.measures import whatif
    from tests.reporting.make import certified_frame

    votes = [[k, n - k] for k in range(n + 1)]
    frame = certified_frame(votes, [0] * len(votes), sigma=SIGMA, alpha=alpha, n=n)
    first = np.zeros(len(votes), np.int64)  # the class that selection chose, whatever the estimation votes say
    proved = (frame.predict == 0) & (frame.top == 0)
    frame = replace(frame, top=first, predict=np.where(proved, 0, ABSTAIN), radius=np.where(proved, frame.radius, 0.0))
    again = whatif.at_alpha(frame, other)
    ways: dict[Claim, Counter[Counts]] = defaultdict(Counter)
    for k, (predict, radius) in enumerate(zip(again.predict.tolist(), again.radius.tolist(), strict=True)):
        if predict != ABSTAIN:
            ways[0, radius][k, n - k] += math.comb(n, k)
    chance, p = worst(Claims(dict(ways), n + 1), GAUSSIAN)
    return quotient(chance, other), p


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="larger samples; takes minutes")
    long = parser.parse_args().long
    n0, n, n_interim = (8, 200, 33) if long else (4, 100, 27)
    found: list[float] = []
    for name, each in every_rule(n0, n, n_interim).items():
        for distance in (0.0, 1e-9):
            ratio, p, sequences = violation(each, distance)
            found.append(ratio)
            law = f" with a law that is off by {distance:g}" if distance else ""
            print(f"{name}{law}: {ratio:.9f} at p_A = {p:.9f} ({sequences:,} sequences of votes)", flush=True)
    size = 30 if long else 16
    ratio, where = audit_multi(4, size, 0.05, 60 if long else 30)
    found.append(ratio)
    print(f"multi, three classes: {ratio:.9f} at {where}")
    ratio, where = audit_predict(size, 0.05, 60 if long else 30)
    found.append(ratio)
    print(f"predict, three classes: {ratio:.9f} at {where}")
    ratio, p = audit_what_if(n, 0.01, 0.05)
    found.append(ratio)
    print(f"what-if alpha, from votes: {ratio:.9f} at p_A = {p:.9f}")
    print(f"largest violation / alpha: {max(found):.9f} ({'REFUTED' if max(found) > 1 else 'none above 1'})")


if __name__ == "__main__":
    main()
