"""How often a stopping rule is wrong at worst: exact enumeration through its real generator.

Every sequence of votes that a rule can be sent is tried once; what it then claims does not depend on p_A, and its
probability is an integer times a product of powers. So the probability of a false claim is computed in rational
arithmetic at each p_A just below one that a claim needs, where it is largest.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np

from smoothctl.base.streams import Stream
from smoothctl.hooks.defaults import NOISE
from smoothctl.hooks.noises import ABSTAIN, Noise
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import Certificate, Rule, StoppingRule
from smoothctl.smoothing.procedure import Procedure

SIGMA = 0.5
ALPHA = 0.05
BITS = 96
Counts = tuple[int, ...]
Claim = tuple[int, float]
"""The class and the radius; abstentions claim nothing."""


def check_rule(rule: StoppingRule, n0: int | None = None, n: int | None = None) -> None:
    """Compute violation / alpha of a rule, for its examples of options and each bound; raise AssertionError above 1.

    Two classes, the worst p_A, noise in exact arithmetic and noise whose law is a little off. ``n0`` and ``n`` are
    small, since every sequence of votes is tried: 3 and 22, or 1 and 12 for a rule with a pilot.
    """
    for name, procedure in procedures(rule, n0 or (1 if rule.pilot else 3), n or (12 if rule.pilot else 22)).items():
        for distance in (0.0, 1e-6):
            ratio, p, sequences = violation(procedure, distance)
            assert sequences > 1, f"{name} asks for no votes"
            assert ratio <= 1.0, f"{name} is wrong {ratio:.6f} times as often as alpha allows at p_A = {p:.9f}"


def procedures(rule: StoppingRule, n0: int, n: int, alpha: float = ALPHA) -> dict[str, Procedure]:
    """A rule with each of its examples of options, and each bound that it takes, by a name."""
    return {
        " ".join([rule.name, *(f"{key}={value}" for key, value in example.items()), bound]): Procedure(
            rule, rule.Options(**example), n0, n, alpha, bound, skip_misclassified=False
        )
        for example in rule.examples
        for bound in rule.bounds
    }


def violation(procedure: Procedure, distance: float = 0.0) -> tuple[float, float, int]:
    """The largest probability of a false claim over alpha, with two classes; the p_A where that is; sequences tried.

    ``distance``: the votes come from noise whose law is off by so much, to the rule's disadvantage.
    """
    noise: Noise = registry().find("noise", NOISE).value
    make = procedure.begin(noise, SIGMA, distance)
    claims = enumerate_claims(lambda: make(0), 2)
    chance, p = worst(claims, noise, SIGMA, Fraction(distance))
    return quotient(chance, procedure.alpha), p, claims.sequences


def quotient(chance: Fraction, alpha: float) -> float:
    """A probability over alpha, above 1 if and only if the fraction is."""
    ratio = chance / Fraction(alpha)
    return max(float(ratio), math.nextafter(1.0, 2.0)) if ratio > 1 else min(float(ratio), 1.0)


@dataclass(frozen=True)
class Claims:
    """What a rule can claim: for each claim, how many sequences of votes lead to it, by votes per class in all."""

    ways: dict[Claim, Counter[Counts]]
    sequences: int


def enumerate_claims(make: Callable[[], Rule[Certificate]], classes: int) -> Claims:
    """Try every sequence of votes that a rule asks for."""
    ways: dict[Claim, Counter[Counts]] = defaultdict(Counter)
    sequences = 0
    pending: list[tuple[list[tuple[Stream, Counts]], int]] = [([], 1)]
    while pending:
        sent, weight = pending.pop()
        request, outcome = replay(make, sent)
        if request is None:
            assert outcome is not None
            sequences += 1
            if outcome.predict != ABSTAIN:
                ways[outcome.predict, outcome.radius][_total(sent, classes)] += weight
            continue
        stream, total = request
        before = next((counts for known, counts in reversed(sent) if known is stream), (0,) * classes)
        for more in compositions(total - sum(before), classes):
            after = tuple(int(old + new) for old, new in zip(before, more, strict=True))
            pending.append(([*sent, (stream, after)], weight * multinomial(more)))
    return Claims(dict(ways), sequences)


def replay(
    make: Callable[[], Rule[Certificate]], sent: list[tuple[Stream, Counts]]
) -> tuple[tuple[Stream, int] | None, Certificate | None]:
    """What a fresh rule asks for after these votes, or what it returns."""
    rule = make()
    request = next(rule)
    for _, counts in sent:
        try:
            request = rule.send(np.array(counts, np.int64))
        except StopIteration as stop:
            return None, stop.value
    return (request.stream, request.total), None


def compositions(total: int, classes: int) -> Iterator[Counts]:
    """All counts of so many classes with this total."""
    if classes == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, classes - 1):
            yield (first, *rest)


def multinomial(counts: Counts) -> int:
    ways, left = 1, sum(counts)
    for count in counts:
        ways, left = ways * math.comb(left, count), left - count
    return ways


def _total(sent: list[tuple[Stream, Counts]], classes: int) -> Counts:
    last = dict(sent)
    return tuple(sum(counts[place] for counts in last.values()) for place in range(classes))


def needed(radius: float, noise: Noise, sigma: float) -> Fraction:
    """The p_A that a radius needs, P(coordinate <= radius), rounded up to a multiple of 2^-96."""
    assert noise.cdf is not None
    with mpmath.workprec(2 * BITS):
        return Fraction(int(mpmath.ceil(noise.cdf(mpmath.mpf(radius), sigma) * 2**BITS)), 2**BITS)


def probability(ways: Counter[Counts], p: tuple[Fraction, ...]) -> Fraction:
    """Of all sequences of votes with these totals."""
    denominator = math.lcm(*(part.denominator for part in p))
    numerators = [int(part * denominator) for part in p]
    powers = [_powers(base, max(counts[place] for counts in ways)) for place, base in enumerate(numerators)]
    found = Fraction(0)
    by_size: dict[int, int] = defaultdict(int)
    for counts, weight in ways.items():
        by_size[sum(counts)] += weight * math.prod(powers[place][count] for place, count in enumerate(counts))
    for size, value in by_size.items():
        found += Fraction(value, denominator**size)
    return found


def _powers(base: int, highest: int) -> list[int]:
    powers = [1]
    for _ in range(highest):
        powers.append(powers[-1] * base)
    return powers


def worst(
    claims: Claims, noise: Noise, sigma: float = SIGMA, distance: Fraction = Fraction(0), most: int = 40
) -> tuple[Fraction, float]:
    """The largest probability of a false claim with two classes, and the p_A where that is.

    ``distance``: the votes come from noise whose law is off by so much, to the rule's disadvantage. At most ``most``
    values of p_A are tried, those of the largest chance in floating point.
    """
    needs = {claim: needed(claim[1], noise, sigma) for claim in claims.ways}
    below = Fraction(1, 2**BITS)
    tried = sorted({need - below for need in needs.values()})
    chances = [_approximate(claims, needs, p) for p in tried]
    best = Fraction(0), 0.5
    for place in np.argsort(chances)[::-1][:most]:
        p = tried[place]
        false: Counter[Counts] = Counter()
        for (predict, radius), ways in claims.ways.items():
            own = p if predict == 0 else 1 - p
            if needs[predict, radius] > own:
                false.update(ways)
        if false:
            drawn = min(p + distance, Fraction(1))
            best = max(best, (probability(false, (drawn, 1 - drawn)), float(p)))
    return best


def _approximate(claims: Claims, needs: dict[Claim, Fraction], p: Fraction) -> float:
    log_p, log_q = math.log(float(p)), math.log(max(float(1 - p), 1e-300))
    total = 0.0
    for claim, ways in claims.ways.items():
        if needs[claim] > (p if claim[0] == 0 else 1 - p):
            total += sum(math.exp(math.log(w) + a * log_p + b * log_q) for (a, b), w in ways.items())
    return total
