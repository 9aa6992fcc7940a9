# SPDX-License-Identifier: Apache-2.0
"""The depth median: certificates against exact laws of neighbours, the margin, and the whole
release.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from reticent_server.domain.columns import DepthDraw, Lattice
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS
from reticent_server.domain.private import Private
from reticent_server.kinds.depth_median.plan import public_directions
from reticent_server.mechanisms import depth_draw, depth_proposals, ptr
from reticent_server.numerics.depth_certificate import MOST_LEVELS, Certificate
from support.attacks.pass_probabilities import pass_probability
from support.attacks.selection_laws import probabilities
from support.seeds import seeded

SCALES = ("iqr", "mad", "trimmed")
DELTA = 1e-3
ANGLES = np.pi * np.arange(6) / 6
DIRECTIONS = {
    1: np.array([[1024], [1023]]),
    2: np.rint(1024 * np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])).astype(np.int64),
}


def part_of(
    d: Any,
    scale: Any,
    etas: Any = (4.0,),
    choice: float = 0.0,
    test: float = 1.0,
    drawing: float = 1.0,
    delta: Any = DELTA,
) -> DepthDraw:
    lattice = Lattice(-(2.0**39), 1.0, 2**40)
    rows = tuple(tuple(int(v) for v in u) for u in DIRECTIONS[d])
    amounts = (int(e * EPSILON_UNITS) for e in (choice, test, drawing))
    return DepthDraw((lattice,) * d, rows, scale, etas, *amounts, int(delta * DELTA_UNITS))


def table(rng: np.random.Generator, d: Any, n: int) -> Any:
    """(d, n) whole numbers: smooth, with far records, or skewed."""
    data = rng.normal(size=(d, n)) * 10_000
    kind = rng.integers(3)
    if kind == 1:
        data[:, rng.random(n) < 0.1] = 10**8
    if kind == 2:
        data = np.abs(data) + 3000 * rng.integers(0, 3, (d, n))
    return np.rint(data)


def replaced(rng: np.random.Generator, data: Any) -> Any:
    """A neighbour with one record far off, at the middle, or at the edge of the quartiles."""
    other = data.copy()
    middle = np.median(data, axis=1)
    spread = np.subtract(*np.quantile(data, [0.75, 0.25], axis=1))
    place = rng.choice([-(10**9), -1, 0, 1, 10**9])
    other[:, rng.integers(data.shape[1])] = np.rint(middle + place * spread / 2)
    return other


def certificate(part: Any, data: Any, reach: int = 12) -> Certificate:
    return Certificate(DIRECTIONS[len(data)], measured(part, data, reach), part.delta / DELTA_UNITS)


def measured(part: Any, data: Any, reach: Any) -> Any:
    return depth_draw.FAMILIES[part.scale].measure(data, DIRECTIONS[len(data)].astype(float), reach)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("tables", [6, pytest.param(350, marks=pytest.mark.audit)])
def test_certificates_shift_and_margins_have_sensitivity_one(scale: str, tables: int) -> None:
    rng, part, pairs, seen = seeded(tables), part_of(2, scale), 0, set()
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
    assert len(seen) > 2


def margin_of(part: Any, data: Any) -> Any:
    n = data.shape[1]
    return depth_draw.margins(part, depth_draw.measure(part, data), n)[0]


def grid_law(data: Any, part: Any, grid: Any) -> Any:
    """Log probabilities of a fine grid of points (d, m) under exp(−ηO)."""
    found = measured(part, data, 2)
    location, scale = (
        np.array(v, float) / found.denominator for v in (found.location, found.scale)
    )
    size = np.abs(DIRECTIONS[len(data)] @ grid - location[:, None]) / scale[:, None]
    logs = -part.etas[0] * size.max(axis=0)
    return logs - logsumexp(logs)


def grid_of(data: Any, d: Any) -> Any:
    """Points around the median that hold all but e⁻³⁰ of the mass at η = 4."""
    middle = np.median(data, axis=1)
    spread = np.subtract(*np.quantile(data, [0.75, 0.25], axis=1))
    axes = [
        m + s * np.linspace(-8, 8, 4001 if d == 1 else 201)
        for m, s in zip(middle, spread, strict=True)
    ]
    return np.stack([a.ravel() for a in np.meshgrid(*axes)])


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d", [1, 2])
def test_neighbours_are_as_close_as_their_certificate_says(scale: str, d: int) -> None:
    """The exact hockey-stick at E_0, by summation on a grid; and E_0 is not far from needed."""
    rng, part, tightest = seeded(5 + d), part_of(d, scale), 0.0
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


@dataclass(frozen=True)
class Pair:
    """Locations and scales in one dimension of a table, and those of its only neighbour: an
    adversary's.
    """

    here: tuple
    there: tuple
    denominator: int = 1

    @property
    def location(self) -> list[Any]:
        return [m for m, _ in self.here]

    @property
    def scale(self) -> list[Any]:
        return [s for _, s in self.here]

    def _both(self) -> Any:
        return zip(self.here, self.there, strict=True)

    def location_change(self, k: Any) -> list[Any]:
        return [abs(a[0] - b[0]) for a, b in self._both()]

    def scale_change(self, k: Any) -> list[Any]:
        return [abs(a[1] - b[1]) for a, b in self._both()]

    def least_scale(self, k: Any) -> list[Any]:
        return [min(a[1], b[1]) if k else a[1] for a, b in self._both()]

    def location_range(self, k: Any) -> tuple[Any, Any]:
        ends = [sorted((a[0], b[0])) if k else (a[0], a[0]) for a, b in self._both()]
        return [low for low, _ in ends], [high for _, high in ends]


def hockey_stick(pair: Any, eta: Any, epsilon: Any, grid: Any) -> Any:
    """The larger of Σ (p − e^ε q)_+ and Σ (q − e^ε p)_+ over a grid, for densities ∝ exp(−ηO)."""
    logs = []
    for table in (pair.here, pair.there):
        size = np.max([np.abs(grid - m) / s for m, s in table], axis=0)
        logs.append(-eta * size - logsumexp(-eta * size))
    p, q = logs
    pairs = (p, q), (q, p)
    return max((-np.exp(a) * np.expm1(np.minimum(epsilon + b - a, 0))).sum() for a, b in pairs)


def certified(pair: Any, eta: Any) -> Any:
    """E_0 of the pair's certificate, over directions that are all the same."""
    directions = np.ones((len(pair.here), 1), dtype=np.int64)
    return Certificate(directions, pair, DELTA).bound(0, eta)


def test_a_pair_of_laws_needs_all_of_the_outlyingness_that_is_counted() -> None:
    """κ·2ηF: scales that grow lower the bottom of O, which is all of the mass, by κf; those that
    shrink raise its edge by κf. The loss there is nearly E_0; half of F would leave it
    uncovered.
    """
    step, eta, kappa = 10**6, 100.0, 0.01
    flat = 10**4 * step
    pair = Pair(
        here=((flat, flat), (0, int(step * (1 + kappa))), (step, step)),
        there=((flat, int(flat * (1 + kappa))), (0, step), (step, step)),
    )
    bound = certified(pair, eta)
    assert 2 * eta * kappa < bound < 2.1 * eta * kappa + 0.1
    grid = np.linspace(-0.5 * step, 1.5 * step, 400_001)
    assert hockey_stick(pair, eta, bound, grid) <= DELTA
    assert hockey_stick(pair, eta, 0.85 * bound, grid) > DELTA


def test_the_outlyingness_that_counts_is_the_neighbour_s_too() -> None:
    """O has a minimum of 0 here and of α there, and κ·2ηα counts: location_range is that of k + 1
    replacements.
    """
    step, eta, kappa = 10**6, 10_000.0, 0.1
    alpha, wide = step // 10, 10**4 * step
    pair = Pair(
        here=((0, int(wide * (1 + kappa))), (-alpha, step)),
        there=((wide // 10, wide), (0, int(step * (1 + kappa)))),
    )
    bound = certified(pair, eta)
    grid = np.linspace(-3 * alpha, 3 * alpha, 400_001)
    assert 1.09 < bound / (2 * eta * 0.1) < 1.2
    assert hockey_stick(pair, eta, bound, grid) <= DELTA
    assert hockey_stick(pair, eta, 0.93 * bound, grid) > DELTA


def test_the_scales_of_the_outlyingness_are_the_neighbour_s_too() -> None:
    """The pair above, from the other side: O has a bottom of 1/(1 + κ) here and of 1 there."""
    step, eta, kappa = 10**6, 1000.0, 1.0
    flat = 10**4 * step
    pair = Pair(
        here=((flat, int(flat * (1 + kappa))), (0, step), (step, step)),
        there=((flat, flat), (0, int(step * (1 + kappa))), (step, step)),
    )
    bound = certified(pair, eta)
    grid = np.linspace(-2 * step, 3 * step, 400_001)
    assert hockey_stick(pair, eta, bound, grid) <= DELTA
    assert hockey_stick(pair, eta, 0.7 * bound, grid) > DELTA


def test_in_many_dimensions_the_change_of_volume_is_needed_beside_the_edge() -> None:
    """d axes of which one's scale shrinks and the others' grow: where the first is largest, the
    density falls by all of κηO and by (d − 2) ln(1 + κ) of the volume. ηO is Gamma(d, 1) there, and
    1/d of the mass is there.
    """
    d, kappa, S = 20, 0.5, 10**6
    grown = int(S * (1 + kappa))
    wide = (0, S * 10**9)  # a direction that is never the largest: programs need one more than d
    pair = Pair(
        here=((0, grown), *((0, S),) * (d - 1), wide),
        there=((0, S), *((0, grown),) * (d - 1), wide),
    )
    directions = np.vstack([np.eye(d, dtype=np.int64), -np.ones((1, d), dtype=np.int64)])
    bound = Certificate(directions, pair, DELTA).bound(0, 1.0)

    def excess(epsilon: Any) -> Any:
        """E (1 − e^(ε − loss))_+ over the part of the mass where the first axis is largest."""
        start = max((epsilon - (d - 2) * np.log1p(kappa)) / kappa, 0.0)
        r = np.linspace(start, start + 80, 400_001)
        kept = -np.expm1(epsilon - (d - 2) * np.log1p(kappa) - kappa * r)
        return np.trapezoid(stats.gamma(d).pdf(r) * kept, r) / d

    assert excess(bound) <= DELTA
    assert excess(bound - d * np.log1p(kappa)) > 5 * DELTA


def test_where_an_outlyingness_is_too_large_to_draw_there_is_no_margin() -> None:
    """ηF beyond MOST_LEVELS, at locations that no point is near to: the shift holds for the limit,
    too.
    """
    far = ((0, 1), (10**6, 1))
    assert certified(Pair(far, far), MOST_LEVELS / (0.5 * 10**6) * 0.99) < np.inf
    assert certified(Pair(far, far), MOST_LEVELS / (0.5 * 10**6) * 1.01) == np.inf


def outcome_law(part: Any, margins: Any) -> tuple[Any, Any]:
    """P(chosen η and passed) by margin of each η, and P(nothing), from the scales that are used."""
    chosen = np.array([1.0])
    if len(margins) > 1:
        ladder = depth_draw.choice(part)
        chosen = probabilities(ladder.levels(depth_draw.scores(part, margins)), ladder)
    test = part.epsilon_test, part.delta
    passed = np.array([pass_probability(q, *test) for q in margins]) * chosen
    return passed, 1 - passed.sum()


def whole_law(part: Any, margins: Any, others: Any, first: Any) -> Any:
    """Probabilities by (η, outcome of the draw) and of nothing, for one of two neighbours.

    Where either margin is positive the draws are the farthest (ε_r, δ)-close laws there are, else
    they have nothing in common.
    """
    e, delta = np.exp(part.epsilon_draw / EPSILON_UNITS), part.delta / DELTA_UNITS
    close = np.array([delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0])
    passed, nothing = outcome_law(part, margins if first else others)
    rows = [
        p * np.array([1.0, 0, 0, 0] if max(q, q_) == 0 else close)[:: 1 if first else -1]
        for p, q, q_ in zip(passed, margins, others, strict=True)
    ]
    return np.append(np.concatenate(rows), nothing)


@pytest.mark.slow
def test_good_and_bad_settings_together_cost_what_is_charged() -> None:
    """Margins of neighbours that differ by one; laws of the draw as far apart as is allowed."""
    part = part_of(1, "iqr", etas=(8.0, 4.0, 2.0), choice=0.5, delta=1e-2)
    cost = depth_draw.cost(part)
    epsilon, delta = cost.epsilon / EPSILON_UNITS, cost.delta / DELTA_UNITS
    assert epsilon == 2.5
    rng, worst = seeded(1), 0.0
    for _ in range(600):
        margins = np.sort(rng.integers(0, 9, 3))
        others = np.maximum(margins + rng.integers(-1, 2, 3), 0)
        p, q = (whole_law(part, margins, others, first) for first in (True, False))
        found = np.maximum(p - np.exp(epsilon) * q, 0).sum()
        worst = max(worst, found)
        assert found <= delta
    assert worst > 0.4 * delta


def test_the_cost_counts_choice_test_and_draw() -> None:
    cost = depth_draw.cost(part_of(1, "iqr", (8.0, 4.0), choice=0.5, test=1.0, drawing=2.0))
    assert cost.epsilon == 3.5 * EPSILON_UNITS
    assert cost.delta == cost.rho_delta == DELTA * DELTA_UNITS
    assert cost.rho == (0.5**2 / 8 + 0.5 + 2.0) * 10**12


@pytest.mark.parametrize("scale", SCALES)
def test_releases_reply_where_it_is_safe_and_are_silent_where_not(scale: str) -> None:
    rng = seeded(2)
    data = np.rint(10_000 * rng.normal(size=(2, 4000)))
    part = part_of(2, scale, etas=(10.0,), test=4.0, drawing=4.0, delta=1e-9)
    for _ in range(5):
        found = depth_draw.release(part, Private(data))
        assert found.passed
        assert np.abs(found.values[:2]).max() < 20_000
        assert found.values[2] == 10.0
        assert np.all(found.values[:2] % 1 == 0)
    for bad in (np.zeros((2, 500)), data[:, :9], data[:, :1], np.full((2, 40), np.nan)):
        assert not depth_draw.release(part, Private(bad)).passed


@pytest.mark.slow
def test_a_private_choice_prefers_the_largest_safe_eta() -> None:
    rng = seeded(4)
    data = np.rint(10_000 * rng.normal(size=(2, 4000)))
    part = part_of(2, "trimmed", etas=(4000.0, 40.0, 20.0), choice=2.0, test=2.0, drawing=2.0)
    chosen = [depth_draw.release(part, Private(data)).values[-1:] for _ in range(40)]
    counts = stats.mode([c[0] if len(c) else 0.0 for c in chosen])
    assert counts.mode == 40.0
    assert counts.count >= 22


@pytest.mark.parametrize("scale", SCALES)
def test_a_test_that_passes_by_chance_where_a_scale_is_0_is_silent(
    scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no law to draw from, and none of the neighbours has a margin."""
    monkeypatch.setattr(ptr, "passes", lambda *_: True)
    part = part_of(2, scale)
    assert not depth_draw.release(part, Private(np.zeros((2, 40)))).passed
    some = np.rint(1000 * seeded(0).normal(size=(2, 40)))
    assert depth_draw.release(part, Private(some)).passed


def degenerate(rng: np.random.Generator, d: Any, n: int) -> Any:
    """Columns along a line across one of the directions, or of few values, in units that are far
    apart.
    """
    units = 10.0 ** rng.integers(0, 9, (d, 1))
    kind = rng.integers(3)
    if kind == 0:
        return np.rint(units * rng.normal(size=(d, n)))
    if kind == 1:
        return units * rng.integers(-3, 4, (d, n))
    across = np.zeros((d, 1))
    across[:2, 0] = rng.integers(1, 1000, 2)
    return np.rint(across * np.rint(units[0] * rng.normal(size=n)) + rng.integers(-2, 3, (d, n)))


@pytest.mark.slow
@pytest.mark.parametrize("tables", [20, pytest.param(3000, marks=pytest.mark.audit)])
def test_where_there_is_a_margin_there_is_a_draw(tables: int) -> None:
    """Scales a million million times apart: once the test has passed, nothing can fail."""
    rng, found = seeded(tables), 0
    lattice = Lattice(-(2.0**39), 1.0, 2**40)
    for _ in range(tables):
        d, n = int(rng.choice([2, 3, 5, 8])), int(rng.integers(30, 120))
        data = degenerate(rng, d, n)
        rows = (
            [(int(-data[1, 0]), int(data[0, 0])) + (0,) * (d - 2)] if abs(data).max() < 1024 else []
        )
        rows += [tuple(int(v) for v in u) for u in public_directions(d, 40)]
        amounts = (0, 2 * EPSILON_UNITS, 40 * EPSILON_UNITS, DELTA_UNITS // 1000)
        eta = float(rng.choice([1e-6, 1e-3, 0.1]))
        part = DepthDraw((lattice,) * d, tuple(rows), str(rng.choice(SCALES)), (eta,), *amounts)
        projections = depth_draw.measure(part, data)
        if depth_draw.margins(part, projections, n)[0] >= 1:
            directions = np.array(rows, dtype=np.int64)
            assert len(depth_proposals.draw(depth_draw.law(directions, projections, eta))) == d
            found += 1
    assert found > 0.8 * tables
