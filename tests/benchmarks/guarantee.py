"""How often stopping rules are wrong at worst: exact enumeration through the real generators.

python tests/benchmarks/guarantee.py [--long]      violation / alpha of every rule, the largest last

Every sequence of votes that a rule can be sent is tried once; what it then claims does not depend on p_A, and its
probability is an integer times a product of powers. So the probability of a false claim is computed in rational
arithmetic at each p_A just below one that a claim needs, where it is largest. A number above 1 refutes the rule.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import mpmath
import numpy as np

from smoothctl.base.draws import Stream
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.hooks.registry import registry
from smoothctl.smoothing.certify import rule_maker
from smoothctl.smoothing.predict import majority
from smoothctl.smoothing.rules import Certificate
from smoothctl.smoothing.sampling import Rule
from smoothctl.smoothing.settings import CertifySettings

GAUSSIAN = registry().find("noise", "gaussian").value
SIGMA = 0.5
BITS = 96
Counts = tuple[int, ...]
Claim = tuple[int, float]
"""The class and the radius; abstentions claim nothing."""


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
            pending.append(([*sent, (stream, after)], weight * _multinomial(more)))
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


def _multinomial(counts: Counts) -> int:
    ways, left = 1, sum(counts)
    for count in counts:
        ways, left = ways * math.comb(left, count), left - count
    return ways


def _total(sent: list[tuple[Stream, Counts]], classes: int) -> Counts:
    last = dict(sent)
    return tuple(sum(counts[place] for counts in last.values()) for place in range(classes))


def needed(radius: float) -> Fraction:
    """The p_A that a radius needs, F(radius / sigma), rounded up to a multiple of 2^-96."""
    with mpmath.workprec(2 * BITS):
        return Fraction(int(mpmath.ceil(mpmath.ncdf(mpmath.mpf(radius) / SIGMA) * 2**BITS)), 2**BITS)


def probability(ways: Counter[Counts], p: tuple[Fraction, ...]) -> Fraction:
    """Of all sequences of votes with these totals."""
    denominator = math.lcm(*(share.denominator for share in p))
    numerators = [int(share * denominator) for share in p]
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


def worst(claims: Claims, distance: Fraction = Fraction(0), most: int = 40) -> tuple[Fraction, float]:
    """The largest probability of a false claim with two classes, and the p_A where that is.

    ``distance``: the votes come from noise whose law is off by so much, to the rule's disadvantage. At most ``most``
    values of p_A are tried, those of the largest chance in floating point.
    """
    needs = {claim: needed(claim[1]) for claim in claims.ways}
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


def every_rule(n0: int, n: int) -> dict[str, CertifySettings]:
    """Settings of every stopping rule, small enough to enumerate."""
    return {
        "fixed": CertifySettings(n0=n0, n=n, alpha=0.05),
        "radii, one": CertifySettings(n0=n0, n=n, alpha=0.05, radii=(0.0,)),
        "radii, grid": CertifySettings(n0=n0, n=n, alpha=0.05, radii=(0.0, 0.1, 0.2, 0.4)),
        "budget": CertifySettings(n0=n0, n=n, alpha=0.05, budget="draft"),
        "fixed, multi": CertifySettings(n0=n0, n=n, alpha=0.05, bound="multi"),
        "fixed, skip misclassified": CertifySettings(n0=n0, n=n, alpha=0.05, skip_misclassified=True),
    }


def audit(settings: CertifySettings, distance: float = 0.0) -> tuple[float, float, int]:
    """Violation / alpha of a rule with two classes, where that is largest, and sequences tried."""
    make = rule_maker(settings, GAUSSIAN, SIGMA, distance)
    claims = enumerate_claims(lambda: make(0), 2)
    chance, p = worst(claims, Fraction(distance))
    return _ratio(chance, settings.alpha), p, claims.sequences


def _ratio(chance: Fraction, alpha: float) -> float:
    """The quotient, above 1 if and only if the fraction is."""
    ratio = chance / Fraction(alpha)
    return max(float(ratio), math.nextafter(1.0, 2.0)) if ratio > 1 else min(float(ratio), 1.0)


def audit_multi(n0: int, n: int, alpha: float, grid: int) -> tuple[float, tuple[float, ...]]:
    """The same with three classes and --bound multi, over a grid of probabilities and points beside ties."""
    settings = CertifySettings(n0=n0, n=n, alpha=alpha, bound="multi")
    make = rule_maker(settings, GAUSSIAN, SIGMA)
    claims = enumerate_claims(lambda: make(-1), 3)
    largest, where = Fraction(0), (1.0, 0.0, 0.0)
    shares = [tuple(Fraction(part, grid) for part in counts) for counts in compositions(grid, 3)]
    for p in shares:
        false: Counter[Counts] = Counter()
        for (predict, radius), ways in claims.ways.items():
            if radius > true_radius(p, predict):
                false.update(ways)
        if false and (chance := probability(false, p)) > largest:
            largest, where = chance, tuple(map(float, p))
    return _ratio(largest, alpha), where


def true_radius(p: tuple[Fraction, ...], own: int) -> float:
    """sigma / 2 (Phi^-1(p_c) - Phi^-1(the largest other)), rounded up; negative where another class leads."""
    from scipy.special import ndtri

    other = max(share for place, share in enumerate(p) if place != own)
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
                wrong[stop.value.predict][counts] += _multinomial(counts)
    largest, where = Fraction(0), (1.0, 0.0, 0.0)
    for counts in compositions(grid, 3):
        p = tuple(Fraction(part, grid) for part in counts)
        if p[0] == max(p):
            false = wrong[1] + wrong[2]
            if (chance := probability(false, p)) > largest:
                largest, where = chance, tuple(map(float, p))
    return _ratio(largest, alpha), where


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
    chance, p = worst(Claims(dict(ways), n + 1))
    return _ratio(chance, other), p


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="larger samples; takes minutes")
    long = parser.parse_args().long
    n0, n = (8, 200) if long else (4, 100)
    found: list[float] = []
    for name, settings in every_rule(n0, n).items():
        for distance in (0.0, 1e-9):
            ratio, p, sequences = audit(settings, distance)
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
