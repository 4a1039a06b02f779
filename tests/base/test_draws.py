"""Random numbers: their distribution, and that each key has its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from smoothctl.base.draws import Draws


def many(count: int = 2_000_000) -> np.ndarray:
    return Draws(3, 1, 4, 1).normal((count,)).double().numpy()


def test_normal_variates_have_the_normal_distribution() -> None:
    values = many()
    assert stats.kstest(values, "norm").pvalue > 0.001
    assert stats.kstest((values[:1_000_000] + values[1_000_000:]) / 2**0.5, "norm").pvalue > 0.001
    for power, expected in ((1, 0), (2, 1), (3, 0), (4, 3), (6, 15)):
        error = np.std(values**power) / len(values) ** 0.5
        assert np.mean(values**power) == pytest.approx(expected, abs=4 * error)


def test_tails_are_there() -> None:
    values = np.abs(many())
    for z in (3.0, 4.0, 4.5):
        expected = 2 * stats.norm.sf(z) * len(values)
        assert np.sum(values > z) == pytest.approx(expected, abs=4 * expected**0.5)


def test_neighbours_and_halves_are_not_correlated() -> None:
    values = many()
    half = len(values) // 2
    for first, second in ((values[:-1], values[1:]), (values[:half], values[half:])):
        for f in (lambda x: x, np.square, np.abs):
            assert abs(np.corrcoef(f(first), f(second))[0, 1]) < 4 / half**0.5


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=4), st.integers(1, 9))
def test_a_key_gives_the_same_numbers_and_another_key_others(key: list[int], count: int) -> None:
    once, again, other = (Draws(5, *k).normal((count,)) for k in (key, key, [*key, 0]))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    assert not torch.equal(once, Draws(5 + 2**32, *key).normal((count,)))


def test_uniforms_integers_and_orders() -> None:
    draws = Draws(0, 0)
    uniform = draws.uniform((100_000,))
    assert 0 <= float(uniform.min()) < float(uniform.max()) < 1
    assert stats.kstest(uniform.double().numpy(), "uniform").pvalue > 0.001
    assert set(draws.integers(0, 3, (1000,)).tolist()) == {0, 1, 2}
    assert sorted(draws.permutation(50).tolist()) == list(range(50))
