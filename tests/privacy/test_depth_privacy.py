"""The depth median: certificates against exact laws of neighbours, the margin, and the whole release."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from reticent_server.domain.columns import DepthDraw, Lattice
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms import depth_draw, selection
from reticent_server.numerics.depth_certificate import Certificate, smallest_maximum
from support_ptr import pass_probability

SCALES = ("iqr", "mad", "trimmed")
DELTA = 1e-3
ANGLES = np.pi * np.arange(6) / 6
DIRECTIONS = {
    1: np.array([[1024.0], [1023.0]]),
    2: np.rint(1024 * np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])),
}


def part_of(d, scale, etas=(4.0,), choice=0.0, test=1.0, drawing=1.0, delta=DELTA):
    lattice = Lattice(-(2.0**39), 1.0, 2**40)
    rows = tuple(tuple(int(v) for v in u) for u in DIRECTIONS[d])
    amounts = (int(e * EPSILON_UNITS) for e in (choice, test, drawing))
    return DepthDraw((lattice,) * d, rows, scale, etas, *amounts, int(delta * DELTA_UNITS))


def table(rng, d, n):
    """(d, n) whole numbers: smooth, with far records, or skewed."""
    data = rng.normal(size=(d, n)) * 10_000
    kind = rng.integers(3)
    if kind == 1:
        data[:, rng.random(n) < 0.1] = 10**8
    if kind == 2:
        data = np.abs(data) + 3000 * rng.integers(0, 3, (d, n))
    return np.rint(data)


def replaced(rng, data):
    """A neighbour with one record far off, at the middle, or at the edge of the quartiles."""
    other = data.copy()
    middle = np.median(data, axis=1)
    spread = np.subtract(*np.quantile(data, [0.75, 0.25], axis=1))
    place = rng.choice([-(10**9), -1, 0, 1, 10**9])
    other[:, rng.integers(data.shape[1])] = np.rint(middle + place * spread / 2)
    return other


def certificate(part, data, reach=12):
    found = depth_draw.FAMILIES[part.scale].measure(data, DIRECTIONS[len(data)], reach)
    return Certificate(DIRECTIONS[len(data)], found, part.delta / DELTA_UNITS)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("tables", [6, pytest.param(350, marks=pytest.mark.audit)])
def test_certificates_shift_and_margins_have_sensitivity_one(scale, tables):
    rng, part, pairs, seen = np.random.default_rng(tables), part_of(2, scale), 0, set()
    for _ in range(tables):
        data = table(rng, 2, int(rng.integers(40, 1500)))
        here, margin = certificate(part, data), margin_of(part, data)
        for _ in range(4):
            other = replaced(rng, data)
            there, margin_ = certificate(part, other), margin_of(part, other)
            assert abs(margin - margin_) <= 1
            for eta in (0.5, 4.0):
                bounds = [here.bound(k, eta) for k in range(4)]
                assert all(a <= b for a, b in pairwise(bounds))
                shifted = [there.bound(k, eta) for k in range(3)]
                assert all(a <= b for a, b in zip(shifted, bounds[1:], strict=True))
            data, here, margin, pairs = other, there, margin_, pairs + 1
            seen.add(margin)
    assert pairs == 4 * tables
    assert len(seen) > 4


def margin_of(part, data):
    n = data.shape[1]
    return depth_draw.margin(part, depth_draw.measure(part, data), part.etas[0], n)


def grid_law(data, part, grid):
    """Log probabilities of a fine grid of points (d, m) under exp(−ηO)."""
    found = depth_draw.FAMILIES[part.scale].measure(data, DIRECTIONS[len(data)], 2)
    size = np.abs(DIRECTIONS[len(data)] @ grid - found.location[:, None]) / found.scale[:, None]
    logs = -part.etas[0] * size.max(axis=0)
    return logs - logsumexp(logs)


def grid_of(data, d):
    """Points around the median that hold all but e⁻³⁰ of the mass at η = 4."""
    middle = np.median(data, axis=1)
    spread = np.subtract(*np.quantile(data, [0.75, 0.25], axis=1))
    axes = [
        m + s * np.linspace(-8, 8, 4001 if d == 1 else 201)
        for m, s in zip(middle, spread, strict=True)
    ]
    return np.stack([a.ravel() for a in np.meshgrid(*axes)])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d", [1, 2])
def test_neighbours_are_as_close_as_their_certificate_says(scale, d):
    """The exact hockey-stick at E_0, by summation on a grid; and E_0 is not far from needed."""
    rng, part, tightest = np.random.default_rng(5 + d), part_of(d, scale), 0.0
    for _ in range(12):
        data = table(rng, d, int(rng.integers(60, 400)))
        bound = certificate(part, data).bound(0, part.etas[0])
        grid = grid_of(data, d)
        p = grid_law(data, part, grid)
        for _ in range(6):
            q = grid_law(replaced(rng, data), part, grid)
            for a, b in ((p, q), (q, p)):
                assert np.maximum(np.exp(a) - np.exp(bound + b), 0).sum() <= DELTA
            tightest = max(tightest, np.abs(p - q)[p > -30].max() / bound)
    assert tightest > 0.15


def test_the_linear_program_attains_its_minimum():
    """From above always; and no point that a search finds is better."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        U = rng.normal(size=(8, 2))
        lower = 1e6 * rng.normal(size=8)
        upper, s = lower + rng.exponential(size=8), rng.exponential(size=8) + 0.1
        found = smallest_maximum(U, lower, upper, s)
        x0 = np.linalg.lstsq(U, (lower + upper) / 2, rcond=None)[0]
        radius = found * s.max()
        trial = x0[:, None] + radius * rng.normal(size=(2, 20_000)) * rng.exponential(size=20_000)
        values = np.maximum(U @ trial - lower[:, None], upper[:, None] - U @ trial) / s[:, None]
        assert found <= values.max(axis=0).min() * (1 + 1e-9)


def outcome_law(part, margins):
    """P(chosen η and passed) by margin of each η, and P(nothing), from the scales that are used."""
    chosen = np.array([1.0])
    if len(margins) > 1:
        scores = depth_draw.scores(part, margins)
        rho = depth_draw.rho_of_bounded_range(part.epsilon_choice) - 1
        logits = scores / selection.gumbel_scale(1, rho)
        chosen = np.exp(logits - logsumexp(logits))
    test = part.epsilon_test, part.delta
    passed = np.array([pass_probability(q, *test) for q in margins]) * chosen
    return passed, 1 - passed.sum()


def whole_law(part, margins, others, first):
    """Probabilities by (η, outcome of the draw) and of nothing, for one of two neighbours.

    Where either margin is positive the draws are the farthest (ε_r, δ)-close laws there are, else they
    have nothing in common.
    """
    e, delta = np.exp(part.epsilon_draw / EPSILON_UNITS), part.delta / DELTA_UNITS
    close = np.array([delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0])
    passed, nothing = outcome_law(part, margins if first else others)
    rows = [
        p * np.array([1.0, 0, 0, 0] if max(q, q_) == 0 else close)[:: 1 if first else -1]
        for p, q, q_ in zip(passed, margins, others, strict=True)
    ]
    return np.append(np.concatenate(rows), nothing)


def test_good_and_bad_settings_together_cost_what_is_charged():
    """Margins of neighbours that differ by one; laws of the draw as far apart as is allowed."""
    part = part_of(1, "iqr", etas=(8.0, 4.0, 2.0), choice=0.5, delta=1e-2)
    cost = depth_draw.cost(part)
    epsilon, delta = cost.epsilon / EPSILON_UNITS, cost.delta / DELTA_UNITS
    assert epsilon == 2.5
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(600):
        margins = np.sort(rng.integers(0, 9, 3))
        others = np.maximum(margins + rng.integers(-1, 2, 3), 0)
        p, q = (whole_law(part, margins, others, first) for first in (True, False))
        found = np.maximum(p - np.exp(epsilon) * q, 0).sum()
        worst = max(worst, found)
        assert found <= delta
    assert worst > 0.4 * delta


def test_the_cost_counts_choice_test_and_draw():
    cost = depth_draw.cost(part_of(1, "iqr", (8.0, 4.0), choice=0.5, test=1.0, drawing=2.0))
    assert cost.epsilon == 3.5 * EPSILON_UNITS
    assert cost.delta == cost.rho_delta == DELTA * DELTA_UNITS
    assert cost.rho == (0.5**2 / 8 + 0.5 + 2.0) * 10**12


@pytest.mark.parametrize("scale", SCALES)
def test_releases_reply_where_it_is_safe_and_are_silent_where_not(scale):
    rng = np.random.default_rng(2)
    data = np.rint(10_000 * rng.normal(size=(2, 4000)))
    part = part_of(2, scale, etas=(10.0,), test=2.0, drawing=2.0)
    for _ in range(5):
        found = depth_draw.release(part, Private(data))
        assert found.passed
        assert np.abs(found.values[:2]).max() < 20_000
        assert found.values[2] == 10.0
        assert np.all(found.values[:2] % 1 == 0)
    for bad in (np.zeros((2, 500)), data[:, :9]):
        assert not depth_draw.release(part, Private(bad)).passed


def test_a_private_choice_prefers_the_largest_safe_eta():
    rng = np.random.default_rng(4)
    data = np.rint(10_000 * rng.normal(size=(2, 4000)))
    part = part_of(2, "trimmed", etas=(4000.0, 40.0, 20.0), choice=2.0, test=2.0, drawing=2.0)
    chosen = [depth_draw.release(part, Private(data)).values[-1:] for _ in range(40)]
    counts = stats.mode([c[0] if len(c) else 0.0 for c in chosen])
    assert counts.mode == 40.0
    assert counts.count >= 22
