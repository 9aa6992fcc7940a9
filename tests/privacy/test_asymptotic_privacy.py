# SPDX-License-Identifier: Apache-2.0
"""The asymptotic calibration: neighbours under its assumptions, its scales, its noise, its cost."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.domain.columns import AsymptoticFit
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms import asymptotic_fit
from reticent_server.numerics.convex_fit import records_within, second_moments
from reticent_server.numerics.smooth_p_value import p_value_noise
from support.attacks.influence import Q, excess, excess_of_balls, extreme, with_responses
from support.seeds import seeded

N = 4000
LOSSES = ("huber", "logistic")


def part_of(loss: Any, **more: Any) -> AsymptoticFit:
    fields = {
        "loss": loss,
        "tuning": 2.0,
        "size": Q,
        "radius_squared": 2.5,
        "floor": 0.01,
        "reach": 3.0,
        "slack": 0.2,
        "contrasts": ((0.0, 1.0), (1.0, 0.5)),
        "offsets": (0.0, 0.1),
        "epsilon_fit": EPSILON_UNITS,
        "delta_fit": DELTA_UNITS // 10**6,
        "epsilon_test": EPSILON_UNITS // 2,
        "delta_test": DELTA_UNITS // 10**7,
    }
    return AsymptoticFit(**fields | more)


def table(rng: np.random.Generator, loss: Any, skewed: bool = False) -> Any:
    x = rng.exponential(size=N) - 1 if skewed else rng.normal(size=N)
    return with_responses(rng, loss, np.vstack([np.ones(N), x]))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("skewed", [False, True])
def test_neighbours_of_well_conditioned_tables_are_as_close_as_is_charged(
    loss: str, skewed: bool
) -> None:
    rng, part = seeded(5), part_of(loss)
    delta, farthest = part.delta_fit / DELTA_UNITS, 0.0
    for _ in range(2):
        rows = table(rng, loss, skewed)
        here = asymptotic_fit.measure(part, rows)
        for _ in range(6):
            other = rows.copy()
            other[:, int(rng.integers(N))] = extreme(rng, loss)
            there = asymptotic_fit.measure(part, other)
            distance = float(np.linalg.norm(here.theta - there.theta))
            farthest = max(farthest, distance / here.noise)
            for s, r in ((here.noise, there.noise), (there.noise, here.noise)):
                assert excess_of_balls(distance, s, r, 1.0) <= delta
            laws = [
                list(zip(found.alpha, found.alpha_noise, strict=True)) for found in (here, there)
            ]
            for one, two in zip(*laws, strict=True):
                assert excess(*one, *two, 0.5) <= part.delta_test / DELTA_UNITS
    assert farthest > 0.003


@pytest.mark.parametrize("loss", LOSSES)
def test_the_scales_are_those_of_the_formulas(loss: str) -> None:
    rows, part = table(seeded(3), loss), part_of(loss)
    found = asymptotic_fit.measure(part, rows)
    w = rows[0] * np.minimum(1.0, 2.5 / (rows[3:] ** 2).sum(axis=0))
    eta = rows[2] + found.theta @ rows[3:]
    if loss == "huber":
        K, score = 2 * np.sqrt(2.5), np.clip(rows[1] - eta, -2, 2)
        slope = (np.abs(rows[1] - eta) <= 2).astype(float)
    else:
        mu = 1 / (1 + np.exp(-eta))
        K, score, slope = np.sqrt(2.5), rows[1] - mu, mu * (1 - mu)
    M = (rows[3:] * w * slope) @ rows[3:].T / N
    Qn = (rows[3:] * (w * score) ** 2) @ rows[3:].T / N
    factor = 5 * np.sqrt(2 * np.log(N) * np.log(2e6)) / N
    assert found.noise == pytest.approx(K / np.linalg.eigvalsh(M)[0] * factor, rel=1e-6)
    V = np.linalg.inv(M) @ Qn @ np.linalg.inv(M)
    for j, (a, b) in enumerate(zip(np.array(part.contrasts), part.offsets, strict=True)):
        t = np.sqrt(N) * abs(a @ found.theta + b) / np.sqrt(a @ V @ a)
        assert found.alpha[j] == pytest.approx(2 * stats.norm.sf(t), rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_p_value_s_noise_is_for_the_record_that_moves_its_contrast_most(loss: str) -> None:
    """One record along M⁻¹a, with the largest score: what it moves aᵀϑ by is what the noise is made
    for.
    """
    rng = seeded(11)
    part = part_of(loss, contrasts=((1.0, 1.0), (0.8, -1.0)), epsilon_test=100 * EPSILON_UNITS)
    rows = with_responses(rng, loss, rng.normal(size=(Q, N)))
    theta = asymptotic_fit.measure(part, rows).theta
    offsets = (-theta[0] - theta[1], theta[1] - 0.8 * theta[0])  # contrasts that are 0, but for .02
    part = replace(part, offsets=tuple(offset + 0.02 for offset in offsets))
    problem = asymptotic_fit.problem_of(part, N)
    records = records_within(problem, rows)
    found = asymptotic_fit.measure(part, rows)
    M, Qn = second_moments(problem, records, found.theta)
    amount = asymptotic_fit._amounts(part.epsilon_test, part.delta_test)
    for j, a in enumerate(np.array(part.contrasts) / np.abs(part.contrasts).max(axis=1)[:, None]):
        direction = np.linalg.solve(M, a)
        u = np.sqrt(2.5) * direction / np.linalg.norm(direction)
        moved = problem.loss.score_bound * abs(
            u @ direction
        )  # the influence of that record on a contrast
        root = np.sqrt(direction @ Qn @ direction)
        t = np.array([np.sqrt(N) * abs(a @ found.theta + part.offsets[j]) / root])
        needed = p_value_noise(t, np.array([moved / root]), N, *amount)
        assert found.alpha_noise[j] == pytest.approx(min(needed[0], 8.0), rel=0.02)
        assert found.alpha_noise[j] < 8.0


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("sd", [0.0, 1e-300, 2.0**-48])
def test_what_rounding_moves_a_p_value_by_is_nothing_beside_its_noise(sd: float) -> None:
    """Two values on both sides of a half are a step apart: (1/σ)²/2 of ρ, which is nothing at 2¹⁴
    steps.
    """
    step, runs = 2.0**-48, 4000
    drawn = asymptotic_fit.noise(np.full(runs, 0.25), np.full(runs, sd), step)
    spread = np.std(drawn - 0.25) / step
    assert spread == pytest.approx(2.0**14, rel=0.1)
    assert (1 / spread) ** 2 / 2 < 1e-8


@pytest.mark.slow
def test_the_noise_is_of_its_scale_and_of_no_other() -> None:
    sd, step, runs = 0.02, 1e-7, 4000
    values = np.full(runs, 0.3)
    z = ((asymptotic_fit.noise(values, np.full(runs, sd), step) - 0.3) ** 2).sum()

    def p_value(factor: Any) -> Any:
        tail = stats.chi2(runs).cdf(z / (factor * sd) ** 2)
        return min(tail, 1 - tail)

    assert p_value(1.0) > 1e-7
    assert p_value(0.7) < 1e-7
    assert p_value(1.3) < 1e-7


@pytest.mark.parametrize("loss", LOSSES)
def test_it_always_replies_within_public_bounds_and_shows_no_scale(loss: str) -> None:
    rng, part = seeded(4), part_of(loss)
    good = table(rng, loss)
    collinear = good.copy()
    collinear[4] = 1.0
    for rows in (good, collinear, np.zeros((Q + 3, 300)), good[:, :2], np.full((Q + 3, 9), np.nan)):
        found = asymptotic_fit.release(part, Private(rows))
        assert found.passed
        assert found.sd == 0.0
        assert found.values.shape == (Q + 2,)
        assert np.all(np.abs(found.values[:Q]) <= part.reach)
        assert np.all((found.values[Q:] > 0) & (found.values[Q:] < 1))


@pytest.mark.slow
def test_the_noise_that_is_drawn_is_the_noise_that_was_measured() -> None:
    rng, part = seeded(7), part_of("huber", epsilon_fit=20 * EPSILON_UNITS)
    rows = table(rng, "huber")[:, :800]
    found = asymptotic_fit.measure(part, rows)
    draws = [asymptotic_fit.release(part, Private(rows)).values[:Q] for _ in range(60)]
    spread = np.std(np.array(draws) - found.theta) / found.noise
    assert 0.6 < spread < 1.5


def test_the_cost_counts_the_fit_and_every_p_value() -> None:
    cost = asymptotic_fit.cost(part_of("huber"))
    assert cost.epsilon == 2 * EPSILON_UNITS
    assert cost.delta == cost.rho_delta == DELTA_UNITS * 12 // 10**7
    assert cost.rho == pytest.approx((0.5 + 2 * 0.125) * RHO_UNITS)
