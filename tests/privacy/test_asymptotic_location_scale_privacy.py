# SPDX-License-Identifier: Apache-2.0
"""Proposal 2 with noise by its joint influence: solver, influence, neighbours, scales, cost."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.noise_free.proposal2 import fit_proposal2

from reticent_server.domain.columns import AsymptoticLocationScale
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms import asymptotic_location_scale as mechanism
from reticent_server.numerics.proposal2_convex import (
    curvature,
    largest_influence,
    normal_curvature,
    solve,
    within,
)
from support.attacks.influence import excess_of_balls
from support.seeds import seeded

N = 3000
LAWS = ("normal", "exponential", "heavy", "two groups")
TUNINGS = (1.0, 1.5, 2.5)


def part_of(c: float = 1.5, **more: Any) -> AsymptoticLocationScale:
    fields = {
        "tuning": c,
        "floor": 0.16 * normal_curvature(c),
        "reach": 0.4,
        "slack": 0.1,
        "epsilon": EPSILON_UNITS,
        "delta": DELTA_UNITS // 10**6,
    }
    return AsymptoticLocationScale(**fields | more)


def records(law: Any, c: Any, n: Any = N, seed: int = 1) -> Any:
    """(1, n), about a tenth of a scale away from where the solver starts."""
    rng = seeded(seed)
    z = {
        "normal": lambda: rng.normal(size=n),
        "exponential": lambda: rng.exponential(size=n),
        "heavy": lambda: rng.standard_t(2, size=n),
        "two groups": lambda: rng.normal(size=n) + 2.5 * (rng.random(n) < 0.2),
    }[law]()
    fit = fit_proposal2(z, c)
    return 0.1 + 1.1 * (z - fit.location)[None, :] / fit.scale


@pytest.mark.sample(4)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("c", TUNINGS)
def test_the_solver_solves_proposal_2_in_its_public_number_of_steps(law: str, c: float) -> None:
    rows, part = records(law, c), part_of(c)
    problem = mechanism.problem_of(part, N)
    expected = fit_proposal2(rows[0], c)
    m, s = solve(problem, within(problem, rows[0]))
    assert np.hypot(m - expected.location, s - expected.scale) <= problem.tolerance
    assert problem.steps < 40_000


@pytest.mark.sample(4)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("c", TUNINGS)
def test_the_bound_is_the_largest_numerical_influence(law: str, c: float) -> None:
    """A record of weight h at y moves (m, s) by h times its influence: by weighted fits, over all
    y.
    """
    z, h = records(law, c)[0], 1e-5
    base = fit_proposal2(z, c)
    S = curvature(z, base.location, base.scale, c)
    bound = base.scale * largest_influence(S, c, 0.0)
    ends = base.location + c * base.scale * np.append(np.linspace(-1, 1, 41), [-3.0, 3.0])
    moved = [np.linalg.norm(_moved(z, y, h, c, base)) / h for y in ends]
    assert max(moved) <= bound * 1.001
    assert max(moved) >= bound * 0.99


def _moved(z: Any, y: Any, h: Any, c: Any, base: Any) -> tuple[Any, Any]:
    """The change of (location, scale) with the law (1 − h)F_n + hδ_y, by Newton's method."""
    u = np.append(z, y)
    weights = np.append(np.full(len(z), (1 - h) / len(z)), h)
    kappa = mechanism.problem_of(part_of(c), 2).kappa
    m, s = base.location, base.scale
    for _ in range(8):
        r = (u - m) / s
        psi, inner = np.clip(r, -c, c), np.abs(r) < c
        score = np.array([weights @ psi, (weights @ psi**2 - kappa) / 2])
        one, first, second = weights @ inner, weights @ (r * inner), weights @ (r * r * inner)
        m, s = np.array([m, s]) + s * np.linalg.solve([[one, first], [first, second]], score)
    return m - base.location, s - base.scale


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("law", LAWS)
def test_neighbours_of_well_conditioned_tables_are_as_close_as_is_charged(law: str) -> None:
    part, rng, farthest = part_of(), seeded(3), 0.0
    delta = part.delta / DELTA_UNITS
    for seed in range(2):
        rows = records(law, part.tuning, seed=seed)
        here = mechanism.measure(part, rows)
        order = np.argsort(rows[0])
        for y in (-1e9, 1e9, 0.1, float(rng.normal())):
            other = rows.copy()
            other[0, order[rng.choice([0, N // 2, N - 1])]] = y
            there = mechanism.measure(part, other)
            distance = float(np.linalg.norm(here.theta - there.theta))
            farthest = max(farthest, distance / here.noise)
            for one, two in ((here.noise, there.noise), (there.noise, here.noise)):
                assert excess_of_balls(distance, one, two, 1.0) <= delta
    assert farthest > 0.003


@pytest.mark.parametrize("law", LAWS)
def test_the_scale_is_that_of_the_formula(law: str) -> None:
    """γ from a fine list of records, at the solution; the two rows of S⁻¹ both count."""
    rows, part = records(law, 1.5), part_of()
    found = mechanism.measure(part, rows)
    m, s = found.theta
    u = (rows[0] - m) / s
    inner, t = np.abs(u) < 1.5, np.linspace(-1.5, 1.5, 20_001)
    one, first, second = inner.mean(), (u * inner).mean(), (u * u * inner).mean()
    kappa = mechanism.problem_of(part, N).kappa
    moved = np.linalg.solve([[one, first], [first, second]], [t, (t * t - kappa) / 2])
    factor = 5 * np.sqrt(2 * np.log(N) * np.log(2e6)) / N
    gamma = s * np.linalg.norm(moved, axis=0).max()
    assert found.noise == pytest.approx(gamma * factor, rel=1e-6)


@pytest.mark.slow
def test_the_noise_that_is_drawn_is_the_noise_that_was_measured() -> None:
    part = part_of(epsilon=20 * EPSILON_UNITS)
    rows = records("exponential", part.tuning)
    found = mechanism.measure(part, rows)
    draws = [mechanism.release(part, Private(rows)).values for _ in range(30)]
    spread = np.std(np.array(draws) - found.theta) / found.noise
    assert 0.55 < spread < 1.6


def test_it_always_replies_within_public_bounds_and_shows_no_scale() -> None:
    part = part_of()
    odd = (np.zeros(300), np.full(9, np.nan), np.array([1e308, -1e308]), np.arange(50.0) * 1e6)
    for z in (*odd, records("normal", 1.5)[0], np.repeat([-1.0, 1.0], 40), np.full(7, np.inf)):
        found = mechanism.release(part, Private(z[None, :]))
        assert found.passed
        assert found.sd == 0.0
        assert abs(found.values[0]) <= 0.4
        assert 0.6 <= found.values[1] <= 1.4


def test_records_far_away_count_as_those_where_the_score_is_flat() -> None:
    part, rows = part_of(), records("heavy", 1.5)
    far = rows.copy()
    far[0, np.argmax(far[0])], far[0, np.argmin(far[0])] = 1e200, -1e200
    one, two = mechanism.measure(part, rows), mechanism.measure(part, far)
    np.testing.assert_array_equal(one.theta, two.theta)
    assert one.noise == two.noise


def test_the_cost_is_that_of_the_part() -> None:
    cost = mechanism.cost(replace(part_of(), epsilon=2 * EPSILON_UNITS))
    assert cost.epsilon == 2 * EPSILON_UNITS
    assert cost.delta == cost.rho_delta == DELTA_UNITS // 10**6
    assert cost.rho == pytest.approx(2 * RHO_UNITS)
