# SPDX-License-Identifier: Apache-2.0
"""The exponential-mechanism M-estimator: the paper's constant fails, ours holds; every candidate
everywhere.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.domain.columns import Lattice, MEstimate
from reticent_server.domain.cost import EPSILON_UNITS
from reticent_server.domain.private import Private
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.m_estimate.plan import plan_m_estimate
from reticent_server.kinds.m_estimate.query import MEstimateQuery
from reticent_server.mechanisms import m_estimate, selection
from support.attacks.selection_laws import log_weights, probabilities
from support.kinds.recipes import facts_of, numeric
from support.seeds import seeded

EPSILON = EPSILON_UNITS
LIMITS = (0.0, 2000.0)


def part_of(
    c: Any,
    base: Any,
    epsilon: Any = EPSILON,
    cells: int = 4000,
    lower: float = 0.0,
    upper: float = 2000.0,
) -> MEstimate:
    """c in units of the data; the lattice as it is planned."""
    lattice = Lattice(-c, c / 65_536, int(np.ceil((2000 + 2 * c) / c * 65_536)))
    return MEstimate(lattice, 65_536, base, lower, upper, LIMITS, cells, epsilon)


UNIFORM = part_of(1.0, "uniform")
CAUCHY = part_of(40.0, "cauchy", lower=900.0, upper=1100.0)


def law(part: Any, x: Any) -> Any:
    """The probability of every candidate, from the whole-number weights that are drawn from."""
    return probabilities(m_estimate.levels(part, np.asarray(x, float)), m_estimate.ladder(part))


def law_by_definition(part: Any, c: Any, x: Any, factor: float = 1.0) -> Any:
    """∝ exp(−factor · ε|S(θ)|/(4K)) at the candidates."""
    theta = m_estimate.candidates(part)
    size = np.abs(np.clip(np.subtract.outer(theta, np.asarray(x)), -c, c).sum(axis=1))
    logs = -factor * part.epsilon / EPSILON_UNITS * size / (4 * c)
    return np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()


D = [0.0, 0, 2, 2, 2000, 2000]
NEIGHBOUR = [0.0, 2, 2, 2000, 2000, 2000]


def test_the_printed_constant_is_wrong_by_a_factor_two_and_ours_holds() -> None:
    """At θ = 1, which is a candidate."""
    part = replace(UNIFORM, lower=0.5, upper=2000.5, cells=2000)
    assert 1.0 in m_estimate.candidates(part)
    at = m_estimate.candidates(part).tolist().index(1.0)
    ratios = [
        np.log(
            law_by_definition(part, 1.0, D, f)[at] / law_by_definition(part, 1.0, NEIGHBOUR, f)[at]
        )
        for f in (2.0, 1.0)
    ]
    assert 1.9 < abs(ratios[0]) < 2.0
    assert abs(ratios[1]) <= 1.0
    assert np.log(law(part, D)[at] / law(part, NEIGHBOUR)[at]) == pytest.approx(ratios[1], abs=1e-3)


@pytest.mark.parametrize("part", [UNIFORM, CAUCHY], ids=["uniform", "cauchy"])
@pytest.mark.parametrize("epsilon", [EPSILON // 1000, EPSILON, 50 * EPSILON])
def test_no_pair_of_tables_is_told_apart_by_more_than_epsilon(part: Any, epsilon: int) -> None:
    """In the exact law; and pairs that come near to ε are found."""
    rng, part = seeded(8), replace(part, epsilon=epsilon, cells=500)
    allowed, worst = epsilon / EPSILON_UNITS, 0.0
    for _ in range(60):
        n = int(rng.integers(1, 9))
        x = rng.choice([0.0, 1, 2, 40, 80, 1000, 1001, 1999, 2000, np.nan, 1e300], n)
        other = np.append(rng.choice([0.0, 2, 80, 1000, 2000, np.inf]), x[1:])
        gap = (
            np.log(law(part, x)) - np.log(law(part, other))
            if allowed < 10
            else log_law(part, x) - log_law(part, other)
        )
        assert np.ptp(gap) <= allowed * (1 + 1e-9)
        worst = max(worst, np.ptp(gap))
    assert worst > 0.5 * allowed


def log_law(part: Any, x: Any) -> Any:
    return log_weights(m_estimate.levels(part, np.asarray(x, float)), m_estimate.ladder(part))


@pytest.mark.parametrize("base", ["uniform", "cauchy"])
def test_epsilon_is_attained(base: str) -> None:
    """One record of two leaves a side for the other, as far as it can: |S| rises by 2K below and
    falls above.
    """
    part = part_of(10.0, base, lower=500.0, upper=1500.0)
    gap = log_law(part, [1000.0, 0.0]) - log_law(part, [1000.0, 2000.0])
    assert 0.999 <= np.ptp(gap) <= 1.0


@pytest.mark.sample(4)
@pytest.mark.parametrize("base", ["uniform", "cauchy"])
@pytest.mark.parametrize("c", [0.3, 7.0, 500.0, 5000.0])
def test_the_law_is_that_of_the_definition(base: str, c: float) -> None:
    """Up to the rounding of records to c/2¹⁶ and of scores to whole levels."""
    part = part_of(c, base, lower=900.0, upper=1100.0, epsilon=4 * EPSILON)
    x = [3.0, 40, 41, 41, 999, 1200.5, 1999]
    ours, expected = law(part, x), law_by_definition(part, c, x)
    assert ours == pytest.approx(expected, rel=3e-3, abs=1e-300)


@pytest.mark.slow
def test_a_cauchy_base_has_the_quartiles_that_are_asked_for() -> None:
    theta = m_estimate.candidates(replace(CAUCHY, cells=1 << 16))
    assert np.quantile(theta, [0.25, 0.5, 0.75]) == pytest.approx([900, 1000, 1100], abs=0.01)
    inside = theta[(theta > 0) & (theta < 2000)]
    share = stats.cauchy(1000, 100).cdf(inside)
    assert share == pytest.approx((np.flatnonzero((theta > 0) & (theta < 2000)) + 0.5) / len(theta))
    assert (theta.min(), theta.max()) == LIMITS


SAMPLES = {
    "spread": [850.0, 900, 980, 1000, 1010, 1011, 1500],
    "tied": [1000.0] * 6,
    "two clusters": [100.0] * 4 + [1900.0] * 4,
    "single": [40.0],
}


@pytest.mark.slow
@pytest.mark.sample(16)
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("base", ["uniform", "cauchy"])
def test_draws_have_the_law_and_not_a_wider_or_narrower_one(base: str, name: str) -> None:
    part = part_of(40.0, base, cells=4096, lower=900.0, upper=1100.0, epsilon=4 * EPSILON)
    x = Private(np.array([SAMPLES[name]]))
    draws = np.array([m_estimate.release(part, x).values[0] for _ in range(4000)])
    theta = m_estimate.candidates(part)

    def p_value(factor: Any) -> Any:
        expected = law_by_definition(part, 40.0, SAMPLES[name], factor)
        edges = np.unique(np.searchsorted(np.cumsum(expected), np.linspace(0.05, 0.95, 19)))
        edges = edges[edges < len(theta) - 1]
        bins = np.searchsorted(theta[edges], draws, side="left")
        mass = np.add.reduceat(expected, np.append(0, edges + 1))
        return stats.chisquare(
            np.bincount(bins, minlength=len(mass)), 4000 * mass / mass.sum()
        ).pvalue

    assert p_value(1.0) > 1e-7
    if name == "spread":
        assert p_value(0.7) < 1e-7
        assert p_value(1.4) < 1e-7


def planned(tuning: Any, epsilon: Any, n: int, **more: Any) -> Any:
    facts = facts_of(n, (numeric("x", 0.0, 1e6),))
    query = MEstimateQuery("x", tuning=tuning, **more)
    return plan_m_estimate(facts, facts.schema.columns[0], query, int(epsilon * EPSILON_UNITS))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("tuning", "epsilon", "n"), [(2.0, 1.0, 20_000), (2.0, 0.1, 200), (1e5, 4.0, 20_000)]
)
@pytest.mark.parametrize("base", ["uniform", "cauchy"])
def test_what_one_table_can_release_its_neighbours_can(
    tuning: float, epsilon: float, n: int, base: str
) -> None:
    """Half of the records at 0 and half at 800,000, of which one is lowered by 1234.5: the piece
    between is 4·10⁵ tuning constants wide, and all of it is candidates that both tables have.
    """
    part = planned(tuning, epsilon, n, base=base).part
    x = np.repeat([0.0, 8e5], n // 2)
    other = x.copy()
    other[-1] -= 1234.5
    logs = [log_law(part, table) for table in (x, other)]
    assert np.isfinite(logs).all()
    assert np.ptp(logs[0] - logs[1]) <= epsilon
    theta = m_estimate.candidates(part)
    released = [m_estimate.release(part, Private(table[None])).values[0] for table in (x, other)]
    assert set(released) <= set(theta.tolist())


def test_a_tuning_constant_that_the_grid_is_too_wide_for_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="larger tuning"):
        planned(0.9, 1.0, 20_000)
    assert planned(0.9, 1.0, 20_000, lower=0.0, upper=5e5).part.cells == 1 << 20
    with pytest.raises(InvalidQuery, match="larger tuning"):
        planned(0.001, 1.0, 20_000, base="cauchy")


def test_a_tuning_constant_beyond_all_distances_is_lowered() -> None:
    plan = planned(1e300, 1.0, 20_000)
    assert plan.tuning == 1e6
    assert plan.part == planned(1e6, 1.0, 20_000).part


def test_any_column_has_a_reply() -> None:
    part = part_of(40.0, "uniform", cells=64)
    for values in ([np.nan], [np.inf, -np.inf], [5e-324], [1e308, -1e308], [0.0] * 9):
        assert 0 <= m_estimate.release(part, Private(np.array([values]))).values[0] <= 2000
    assert m_estimate.release(part, Private(np.empty((1, 0)))).values.shape == (1,)


def test_the_cost_is_pure() -> None:
    cost = m_estimate.cost(UNIFORM)
    assert (cost.epsilon, cost.delta, cost.rho) == (EPSILON, 0, 10**12 // 8)
    ladder = m_estimate.ladder(UNIFORM)
    assert selection.billed_rho(ladder.steps, ladder) * 10**12 <= cost.rho
