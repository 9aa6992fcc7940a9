# SPDX-License-Identifier: Apache-2.0
"""Propose–test–release: exact laws of the test and of stable bins on neighbours, and the real
draws.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.domain.columns import GeometricBins, Lattice, StableBin, UniformBins
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms import ptr, stable_bin
from support.seeds import seeded

EPSILON, DELTA = 2 * EPSILON_UNITS, DELTA_UNITS // 20
E1, D1 = EPSILON / EPSILON_UNITS, DELTA / DELTA_UNITS
LATTICE = Lattice(0.0, 1.0, 64)


def pass_probability(q: Any, epsilon: Any = EPSILON, delta: Any = DELTA, scale: Any = None) -> Any:
    """P(q + Z ≥ T), Z discrete Laplace of the scale that is drawn."""
    p = np.exp(-1 / (scale or ptr.noise_scale(epsilon)))
    short = ptr.threshold(epsilon, delta) - q
    return p**short / (1 + p) if short > 0 else 1 - p ** (1 - short) / (1 + p)


@pytest.mark.parametrize("epsilon", [10**7, 10**9, 5 * 10**9])
@pytest.mark.parametrize("delta", [10**6, 10**12, 10**17])
def test_a_margin_of_zero_almost_never_passes_and_neighbours_are_close(
    epsilon: int, delta: int
) -> None:
    assert pass_probability(0, epsilon, delta) <= delta / DELTA_UNITS
    assert pass_probability(1, epsilon, delta) * 2 > delta / DELTA_UNITS
    e = np.exp(epsilon / EPSILON_UNITS) * (1 + 1e-9)
    top = 2 * ptr.threshold(epsilon, delta)
    for q in np.unique(np.linspace(0, top, 40).astype(int)).tolist():
        a, b = (pass_probability(m, epsilon, delta) for m in (q, q + 1))
        assert b <= e * a
        assert 1 - a <= e * (1 - b) + 1e-12


def test_a_margin_at_its_cap_passes() -> None:
    cap = ptr.margin_cap(EPSILON, DELTA, 10**6)
    assert pass_probability(cap) > 1 - 1e-12
    assert ptr.margin_cap(EPSILON, DELTA, 5) == 5


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("q", [0, 1, 2])
def test_the_draws_have_that_law_and_no_other(q: int) -> None:
    epsilon, runs = EPSILON_UNITS // 2, 8000
    hits = sum(ptr.passes(Private(q), epsilon, DELTA_UNITS // 10) for _ in range(runs))

    def p_value(factor: Any) -> Any:
        scale = factor * ptr.noise_scale(epsilon)
        p = pass_probability(q, epsilon, DELTA_UNITS // 10, scale)
        return stats.binomtest(hits, runs, p).pvalue

    assert p_value(1.0) > 1e-7
    assert p_value(0.7) < 1e-6
    assert p_value(1.3) < 1e-6


PARTS = {
    "iqr": StableBin("iqr", LATTICE, GeometricBins(1.0, 3.0, 5), EPSILON, DELTA),
    "median": StableBin("median", LATTICE, UniformBins(9.0), EPSILON, DELTA),
}
VALUES = (0.0, 1.0, 5.0, 8.0, 12.0, 40.0)


@cache
def sorted_margin(name: Any, ordered: Any, shift: Any) -> Any:
    return stable_bin.margin(PARTS[name], np.array(ordered), shift)


def margin(name: Any, table: Any, shift: Any) -> Any:
    return sorted_margin(name, tuple(sorted(table)), shift)


def law(name: Any, table: Any) -> Any:
    return sorted_law(name, tuple(sorted(table)))


@cache
def sorted_law(name: Any, table: Any) -> Any:
    """The exact probabilities of what `release` gives: a bin of one of the partitions, or
    nothing.
    """
    left, found = 1.0, {}
    for shift in stable_bin.SHIFTS:
        q, number = margin(name, table, shift)
        p = pass_probability(q)
        found[shift, number] = left * p
        left *= 1 - p
    return found | {None: left}


def hockey_stick(p: Any, q: Any, epsilon: Any) -> Any:
    return sum(max(0.0, v - np.exp(epsilon) * q.get(k, 0.0)) for k, v in p.items())


def pairs(n: int, rng: np.random.Generator = None, number: Any = None) -> Iterator[Any]:
    """Neighbouring tables: all of them, or a random sample of the tables."""
    tables = product(VALUES, repeat=n) if rng is None else rng.choice(VALUES, (number, n))
    for table in tables:
        for value in VALUES:
            yield tuple(table), (value, *table[1:])


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PARTS)
def test_margins_have_sensitivity_one_and_are_safe(name: str) -> None:
    rng, checked, margins = seeded(4), 0, set()
    for source in (pairs(5), pairs(9, rng, 600), pairs(24, rng, 200), pairs(41, rng, 100)):
        for a, b in source:
            for shift in stable_bin.SHIFTS:
                (q, j), (q_, j_) = (margin(name, t, shift) for t in (a, b))
                assert abs(q - q_) <= 1
                assert j == j_ or q == q_ == 0
                margins.add(q)
                checked += 1
    assert checked > 10_000
    assert {0, 1, 2, 3} <= margins


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PARTS)
def test_no_pair_of_tables_is_told_apart_by_more_than_is_charged(name: str) -> None:
    part = PARTS[name]
    cost, rng, worst = stable_bin.cost(part), seeded(5), 0.0
    epsilon, delta = cost.epsilon / EPSILON_UNITS, cost.delta / DELTA_UNITS
    assert (epsilon, delta) == (2 * E1, pytest.approx(2 * D1))
    assert cost.rho == pytest.approx(E1**2 * 10**12)
    assert cost.rho_delta == cost.delta
    for a, b in (*pairs(4), *pairs(9, rng, 400), *pairs(24, rng, 100)):
        found = hockey_stick(law(name, a), law(name, b), epsilon)
        worst = max(worst, found)
        assert found <= delta
    assert worst > 0.2 * delta


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PARTS)
def test_the_release_follows_the_law_that_was_attacked(name: str) -> None:
    part, table = PARTS[name], (0.0, 1.0, 5.0, 5.0, 8.0, 8.0, 12.0, 12.0, 12.0, 40.0)
    exact = law(name, table)
    outcomes = [k for k in exact if exact[k] > 1e-3]
    assert len(outcomes) >= 2
    values = {
        k: None if k is None else stable_bin.centre(part.bins, *k) * LATTICE.step for k in outcomes
    }
    runs = 2500
    draws = [stable_bin.release(part, Private(np.array([table]))) for _ in range(runs)]
    seen = [sum((d.values[0] if d.passed else None) == values[k] for d in draws) for k in outcomes]
    expected = runs * np.array([exact[k] for k in outcomes])
    assert sum(seen) > 0.99 * runs
    assert stats.chisquare(seen, expected * sum(seen) / expected.sum()).pvalue > 1e-7
