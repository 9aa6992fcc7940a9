"""The exponential-mechanism M-estimator: the paper's constant fails, ours holds; the sampler is exact."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from reticent_server.domain.columns import Lattice, MEstimate
from reticent_server.domain.cost import EPSILON_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms import m_estimate

EPSILON = EPSILON_UNITS
LATTICE = Lattice(0.0, 1.0, 2000)
UNIFORM = MEstimate(LATTICE, 1.0, "uniform", 0.0, 2000.0, EPSILON)
CAUCHY = MEstimate(LATTICE, 40.0, "cauchy", 900.0, 1100.0, EPSILON)


def score(part, x, theta):
    """−|S(θ)| from its definition."""
    return -np.abs(np.clip(np.subtract.outer(theta, x), -part.c, part.c).sum(axis=-1))


def log_density(part, x, theta, factor=1.0):
    """ln density at θ, normalised by adaptive integration. factor: of the exponent."""
    knots = np.unique(np.concatenate([x - part.c, x + part.c, [part.lower, part.upper]]))
    a = factor * m_estimate.rate(part)

    def plain(t):
        return m_estimate.log_base(part, np.atleast_1d(t)) + a * score(part, x, np.atleast_1d(t))

    inner = knots[(knots >= part.lower) & (knots <= part.upper)]
    edges = inner if part.base == "uniform" else [-np.inf, *knots, np.inf]
    total = sum(
        integrate.quad(lambda t: np.exp(plain(t)[0]), low, high, limit=200)[0]
        for low, high in pairwise(edges)
    )
    return plain(theta) - np.log(total)


D = np.array([0.0, 0, 2, 2, 2000, 2000])
NEIGHBOUR = np.array([0.0, 2, 2, 2000, 2000, 2000])


def test_the_printed_constant_is_wrong_by_a_factor_two_and_ours_holds():
    theta = np.array([1.0])
    ratios = [
        abs(log_density(UNIFORM, D, theta, f) - log_density(UNIFORM, NEIGHBOUR, theta, f))[0]
        for f in (2.0, 1.0)
    ]
    assert ratios[0] == pytest.approx(1.998, abs=2e-3)
    assert ratios[1] <= 1.0


@pytest.mark.parametrize("part", [UNIFORM, CAUCHY], ids=["uniform", "cauchy"])
def test_no_pair_of_tables_is_told_apart_by_more_than_epsilon(part):
    rng = np.random.default_rng(8)
    theta = np.linspace(0, 2000, 4001)
    worst, slack = 0.0, 1e-6
    for _ in range(60):
        n = int(rng.integers(1, 9))
        x = rng.choice([0.0, 1, 2, 40, 80, 1000, 1001, 1999, 2000], n)
        other = np.append(rng.choice([0.0, 2, 80, 1000, 2000]), x[1:])
        gap = log_of_draws(part, x, theta) - log_of_draws(part, other, theta)
        worst = max(worst, np.abs(gap).max())
        assert np.ptp(gap) <= 1 + slack
    assert 0.5 < worst <= 1 + slack


def log_of_draws(part, x, theta):
    """ln density of what `draw` draws, from its own pieces: envelope mass, thinned by the base."""
    found = m_estimate.density(part, x)
    kept = np.concatenate([_kept(found, part), [found.tails] * 2])
    return (
        -m_estimate.rate(part) * np.interp(theta, found.pieces.t, found.pieces.size)
        + m_estimate.log_base(part, theta)
        - logsumexp(kept)
    )


def _kept(found, part):
    """(pieces,) log masses of the pieces under the base itself, by Gauss–Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    t, width = found.pieces.t[:-1, None], found.pieces.width[:, None]
    place = t + width * (nodes + 1) / 2
    share = (nodes + 1) / 2
    exponent = found.exponent[:-1, None] * (1 - share) + found.exponent[1:, None] * share
    logs = m_estimate.log_base(part, place.ravel()).reshape(place.shape) - exponent
    return logsumexp(logs + np.log(weights * width / 2), axis=1)


@pytest.mark.parametrize("part", [UNIFORM, CAUCHY], ids=["uniform", "cauchy"])
def test_the_pieces_are_the_density_by_its_definition(part):
    x = np.array([3.0, 40, 41, 41, 999, 1200])
    theta = np.array([0.0, 2.5, 41.0, 500.0, 998.7, 1199.0, 2000.0])
    part = replace(part, c=7.0)
    assert log_of_draws(part, x, theta) == pytest.approx(log_density(part, x, theta), abs=1e-6)


SAMPLES = {
    "spread": np.array([850.0, 900, 980, 1000, 1010, 1011, 1500]),
    "tied": np.full(6, 1000.0),
    "two clusters": np.array([100.0] * 4 + [1900.0] * 4),
    "single": np.array([40.0]),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("part", [replace(UNIFORM, c=40.0), CAUCHY], ids=["uniform", "cauchy"])
def test_draws_have_the_density_and_not_a_wider_or_narrower_one(part, name):
    x, part = SAMPLES[name], replace(part, epsilon=4 * EPSILON)
    found = m_estimate.density(part, x)
    draws = np.array([found.draw() for _ in range(5000)])
    grid = np.unique(np.concatenate([np.linspace(-4000, 6000, 200_001), found.pieces.t]))
    grid = grid[(grid >= found.pieces.t[0]) & (grid <= found.pieces.t[-1])]
    grid = grid[np.abs(grid) < 1e5]
    f = np.exp(log_of_draws(part, x, grid))
    F = np.concatenate([[0], np.cumsum((f[1:] + f[:-1]) / 2 * np.diff(grid))])
    F += (1 - F[-1]) / 2  # a Cauchy law's tails beyond the grid, the same on both sides
    assert stats.kstest(draws, lambda t: np.interp(t, grid, F)).pvalue > 1e-7
    if name == "spread":
        centre = np.median(x)
        for factor in (0.7, 1.3):
            wrong = stats.kstest(
                centre + (draws - centre) / factor, lambda t: np.interp(t, grid, F)
            )
            assert wrong.pvalue < 1e-6


def test_a_released_draw_is_on_the_lattice_and_within_the_bounds():
    part = replace(CAUCHY, epsilon=EPSILON // 1000)
    for _ in range(200):
        value = m_estimate.release(part, Private(np.array([[5.0, 9.0]]))).values[0]
        assert 0 <= value <= 2000
        assert (value * 1024) % 1 == 0
    cost = m_estimate.cost(UNIFORM)
    assert (cost.epsilon, cost.delta, cost.rho) == (EPSILON, 0, 10**12 // 8)


def test_a_cauchy_draw_is_thinned_within_its_piece():
    """Almost no ε: a draw is Cauchy, also between the public cuts, where the envelope is flat."""
    part = replace(CAUCHY, epsilon=1)
    found = m_estimate.density(part, np.array([1000.0]))
    z = np.array([found.draw() - part.centre for _ in range(20_000)]) / part.scale
    z = np.abs(z[np.abs(z) > 1])
    low = 2 ** (np.floor(4 * np.log2(z)) / 4)
    high = low * 2**0.25
    place = (np.arctan(z) - np.arctan(low)) / (np.arctan(high) - np.arctan(low))
    assert stats.kstest(place, stats.uniform.cdf).pvalue > 1e-7
    flat = low + (high - low) * np.random.default_rng(0).random(len(z))
    wrong = (np.arctan(flat) - np.arctan(low)) / (np.arctan(high) - np.arctan(low))
    assert stats.kstest(wrong, stats.uniform.cdf).pvalue < 1e-4
