# SPDX-License-Identifier: Apache-2.0
"""Draws from exp(−ηO): every decision by exact arithmetic, and the law by numerical integration."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.mechanisms import _sampler, depth_draw, depth_proposals
from reticent_server.mechanisms.depth_proposals import Bits, target
from reticent_server.numerics import simplex_envelope
from reticent_server.numerics.depth_iqr import IqrProjections
from reticent_server.numerics.depth_trimmed import TrimmedProjections
from reticent_server.numerics.minimax import Program, signed_basis, smallest_maximum
from reticent_server.numerics.rational_matrices import dot
from reticent_server.numerics.simplex_envelope import (
    bounded_simplex,
    envelope,
    functions,
    largest_volume,
    simplex_of,
)
from support.seeds import seeded

ETA = Fraction(3)
UNIT = 10**6  # steps in a scale: rounding to whole steps is then far below a bin
DRAWS = 5000
BINS = {1: 12, 2: 5, 3: 3}
CELLS = {1: 4000, 2: 400, 3: 105}


def program_of(name: Any, d: Any) -> Program:
    """Directions with locations and scales: the shapes that could go wrong."""
    rng = seeded(d)
    directions = np.rint(64 * rng.normal(size=(max(12, 2 * d), d))).astype(np.int64)
    if name == "few":
        directions = np.vstack([np.eye(d, dtype=np.int64), np.arange(1, d + 1)])
    if name == "tied":
        data = UNIT * rng.integers(-2, 3, (d, 41)).astype(float)
        whole = np.where(np.abs(directions) < 7, 64, directions)
        found = IqrProjections.measure(data, whole.astype(float), 1)
        return Program(whole, found.location, found.location, found.scale)
    if name == "degenerate":  # every function three times, and all of them meet in one point
        directions = np.tile(directions[: 2 * d + 2], (3, 1))
    norms = np.rint(UNIT * np.sqrt((directions**2).sum(axis=1))).astype(np.int64)
    location, stretch = np.zeros(len(norms)), np.ones(len(norms))
    if name in {"plain", "few"}:
        location, stretch = 0.3 * rng.normal(size=len(norms)), 1 + 0.5 * rng.random(len(norms))
    m = [int(v) for v in location * norms]
    return Program(directions, m, m, [int(v) for v in stretch * norms])


def optimum_of(program: Any) -> Any:
    return smallest_maximum(program, signed_basis(program.directions))


def of_basis(program: Any, basis: Any) -> Any:
    return simplex_of([program.row(i) for i in basis], [program.limit(i) for i in basis])


SIMPLICES = {
    "the best": lambda p, o: envelope(p, o, float(ETA)),
    "exchanged": lambda p, o: of_basis(
        p, simplex_envelope.exchanges(functions(p, o), signed_basis(p.directions), float(ETA))
    ),
    "whatever the data": lambda p, o: of_basis(p, signed_basis(p.directions)),
    "bounded": lambda p, o: bounded_simplex(p, o, float(ETA)),
}


def outlyingness(program: Any, points: Any) -> Any:
    """O (m,) at points (d, m), in float64."""
    scale = np.array(program.scale, float)[:, None]
    return (np.abs(program.directions @ points - np.array(program.lower)[:, None]) / scale).max(
        axis=0
    )


def p_value(sample: Any, program: Any, eta: Any = float(ETA)) -> Any:
    """χ² of the sample in bins of every coordinate, against sums of exp(−ηO) over a fine grid."""
    d, sample = len(sample), sample / UNIT
    reach = np.abs(sample).max() * 1.6 + 0.5
    step = 2 * reach / CELLS[d]
    axis = -reach + step * (np.arange(CELLS[d]) + 0.5)
    points = np.stack([a.ravel() for a in np.meshgrid(*[axis] * d, indexing="ij")])
    weights = np.exp(-eta * outlyingness(program, UNIT * points)).reshape((CELLS[d],) * d)
    weights /= weights.sum()
    edges = []
    for k in range(d):
        others = tuple(j for j in range(d) if j != k)
        F = np.cumsum(weights.sum(axis=others))
        places = np.searchsorted(F, np.arange(1, BINS[d]) / BINS[d])
        edges.append(-reach + step * (places + 1))
    coarse = [np.searchsorted(e, axis) for e in edges]
    flat = np.ravel_multi_index(np.meshgrid(*coarse, indexing="ij"), (BINS[d],) * d).ravel()
    expected = np.bincount(flat, weights.ravel(), minlength=BINS[d] ** d)
    places = [np.searchsorted(e, row) for e, row in zip(edges, sample, strict=True)]
    seen = np.bincount(np.ravel_multi_index(places, (BINS[d],) * d), minlength=BINS[d] ** d)
    common = expected > 5e-3
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    kept = expected > 0
    return stats.chisquare(seen[kept], seen.sum() * expected[kept] / expected.sum()).pvalue


def kept_points(law: Any, number: Any) -> Any:
    """(d, number) kept proposals, by float64 for speed; decisions are tested one by one below.
    Those that float64 is not trusted with, a few in a million, are decided exactly: one of them may
    be far out.
    """
    found, have = [], 0
    D = np.array([[float(v) for v in edge] for edge in law.simplex.edges])
    centre = np.array([float(v) for v in law.simplex.centre])
    while have < number:
        words = _sampler.words((len(D) + 1) * 4000).reshape(-1, 4000)
        kept = depth_proposals.possible(law, words)
        for k in np.flatnonzero(kept & ((words < 2**40) | (words > 2**64 - 2**40)).any(axis=0)):
            kept[k] = (
                depth_proposals.decided(law, Bits(tuple(words[:, k].tolist()), 64)) is not None
            )
        cuts = [floor(b * 2**64) for b in law.bounds]
        facets = sum((words[0] > np.uint64(cut)).astype(int) for cut in cuts) + np.zeros(4000, int)
        E = depth_proposals._exponentials(words[1:])
        E[facets, np.arange(4000)] = 0.0
        found.append((centre[:, None] + D.T @ E / float(law.eta))[:, kept])
        have += found[-1].shape[1]
    return np.concatenate(found, axis=1)[:, :number]


SHAPES = ["plain", "symmetric", "tied", "few", "degenerate"]
SHORT = [
    "plain",
    "tied",
    *(pytest.param(n, marks=pytest.mark.audit) for n in ("symmetric", "few", "degenerate")),
]


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("simplex", SIMPLICES)
def test_draws_have_the_density_whatever_the_simplex(d: int, name: str, simplex: str) -> None:
    program = program_of(name, d)
    under = SIMPLICES[simplex](program, optimum_of(program))
    assert p_value(kept_points(target(program, under, ETA), DRAWS), program) > 1e-7


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_another_eta_is_rejected(d: int) -> None:
    program = program_of("plain", d)
    under = envelope(program, optimum_of(program), float(ETA))
    for factor in (Fraction(7, 10), Fraction(13, 10)):
        sample = kept_points(target(program, under, ETA * factor), DRAWS)
        assert p_value(sample, program) < 1e-12


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("size", [800, pytest.param(2500, marks=pytest.mark.audit)])
def test_single_draws_have_the_density(d: int, size: int) -> None:
    program = program_of("plain", d)
    law = target(program, envelope(program, optimum_of(program), float(ETA)), ETA)
    sample = np.array([depth_proposals.draw(law) for _ in range(size)], dtype=float).T
    assert p_value(sample, program) > 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("size", [400, pytest.param(1500, marks=pytest.mark.audit)])
def test_numbers_that_begin_with_four_bits_are_refined_to_the_same_law(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Few bits leave every decision open: facets, proposals and nearest points are all found by
    refining.
    """
    program = program_of("plain", 2)
    law = target(program, envelope(program, optimum_of(program), float(ETA)), ETA)
    rng, found = seeded(5), []
    asked = []
    more = Bits.more
    monkeypatch.setattr(Bits, "more", lambda bits: asked.append(bits.count) or more(bits))
    while len(found) < size:
        point = depth_proposals.decided(law, Bits(tuple(rng.integers(0, 16, 4).tolist()), 4))
        found += [point] if point is not None else []
    assert set(asked) == {4}
    assert p_value(np.array(found, dtype=float).T, program) > 1e-7


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2])
def test_a_point_that_64_bits_leave_open_is_drawn_with_more(d: int) -> None:
    """At η = 2⁻⁶⁰ thousands of whole points begin with the same bits, and all of them are
    reached.
    """
    program, eta = program_of("plain", d), Fraction(1, 2**60)
    law = target(program, envelope(program, optimum_of(program), float(eta)), eta)
    words = seeded(d).integers(2**62, 2**63, (200, d + 2)).tolist()
    found = [depth_proposals.decided(law, Bits(tuple(row), 64)) for row in words]
    kept = [row for row, point in zip(words, found, strict=True) if point is not None]
    assert len(kept) > 20
    for row in kept[:5]:
        again = {tuple(depth_proposals.decided(law, Bits(tuple(row), 64))) for _ in range(12)}
        assert len(again) > 6


def by_decimals(law: Any, words: Any) -> tuple[Any, Any]:
    """The proposal of these words, at the middle of what 64 bits leave open, in 50 digits:
    (η(O − h) − E_i, the point), from the definitions."""
    with localcontext() as context:
        context.prec = 50
        U = [(Decimal(int(w)) + Decimal("0.5")) / 2**64 for w in words]
        E = [Fraction(-u.ln()) for u in U[1:]]
    facet = sum(b <= Fraction(U[0]) for b in law.bounds)
    simplex, program = law.simplex, law.program
    parts = [Fraction(0) if m == facet else E[m] for m in range(len(E))]
    x = [
        c + sum(e * edge[k] for e, edge in zip(parts, simplex.edges, strict=True)) / law.eta
        for k, c in enumerate(simplex.centre)
    ]
    rows = zip(program.directions.tolist(), program.lower, program.scale, strict=True)
    outlying = max(abs(dot(u, x) - m) / Fraction(s) for u, m, s in rows)
    h = simplex.lowest + sum(parts) / law.eta
    return law.eta * (outlying - h) - E[facet], x


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("name", "d"), [("plain", 1), ("plain", 2), ("plain", 3), ("tied", 2), ("tied", 3)]
)
def test_every_decision_is_that_of_the_definition(name: str, d: int) -> None:
    """Kept or not, to twelve digits, and the nearest whole point; what float64 passes over is not
    kept.
    """
    program = program_of(name, d)
    under = SIMPLICES["bounded"](program, optimum_of(program))
    law = target(program, under, ETA, denominator=7)
    words = seeded(d).integers(0, 2**64, (d + 2, 300), dtype=np.uint64)
    possible = depth_proposals.possible(law, words)
    counts = [0, 0]
    for column, maybe in zip(words.T.tolist(), possible.tolist(), strict=True):
        excess, x = by_decimals(law, column)
        assert maybe >= (excess <= 0)
        assert maybe <= (excess <= 1e-9)
        found = depth_proposals.decided(law, Bits(tuple(column), 64))
        if abs(excess) > 1e-12:
            assert (found is not None) == (excess < 0)
            counts[excess < 0] += 1
        if found is not None:
            assert all(
                abs(v / 7 - w) <= Fraction(1, 2) + Fraction(1, 10**9)
                for v, w in zip(x, found, strict=True)
            )
    assert min(counts) > 20


def test_bits_that_a_bound_divides_do_not_tell_the_facet() -> None:
    """U lies in [w, w + 1)/2^count; a bound strictly inside leaves open on which side of it."""
    program = program_of("plain", 2)
    law = target(program, envelope(program, optimum_of(program), float(ETA)), ETA)
    open_bounds = [(k, bound) for k, bound in enumerate(law.bounds) if 0 < bound < 1]
    assert open_bounds
    for k, bound in open_bounds:
        for count in (64, 128):
            word = floor(bound * 2**count)
            assert bound * 2**count > word
            assert depth_proposals._facet(law, Bits((word,), count)) is None
            assert depth_proposals._facet(law, Bits((word - 1,), count)) == k
            assert depth_proposals._facet(law, Bits((word + 1,), count)) == k + 1


def test_words_at_the_ends_are_left_to_exact_arithmetic() -> None:
    program = program_of("plain", 2)
    law = target(program, envelope(program, optimum_of(program), float(ETA)), ETA)
    ends = [0, 2**40 - 1, 2**64 - 1, 2**64 - 2**40 + 1]
    words = np.array([[2**62] * 4, ends, [2**60] * 4, [2**59] * 4], dtype=np.uint64)
    assert depth_proposals.possible(law, words).all()
    for column in words.T.tolist():
        depth_proposals.decided(law, Bits(tuple(column), 64))
    cut = floor(law.bounds[0] * 2**64)
    assert depth_proposals.possible(
        law, np.array([[cut], [2**60], [2**60], [2**60]], dtype=np.uint64)
    ).all()


@pytest.mark.sample(4)
@pytest.mark.parametrize("eta", [2.0**-33, 2.0**-20, 1.0])
def test_every_whole_point_near_a_draw_is_reached_by_neighbours_too(eta: float) -> None:
    """In one dimension x = c ± sE/η: for any whole point there are bits that lead to it, on both
    tables; a float64 uniform leads to one in hundreds where the scale is 2⁵³ steps.
    """
    rng = seeded(0)
    data = np.rint(2.0**20 * rng.normal(size=(1, 1000)))
    other = data.copy()
    other[0, 0] = 2.0**30
    directions = np.array([[1024], [1023]])
    for table in (data, other):
        found = TrimmedProjections.measure(table, directions.astype(float), 4)
        program = Program(directions, found.location, found.location, found.scale)
        law = target(
            program, envelope(program, optimum_of(program), eta), Fraction(eta), found.denominator
        )
        for _ in range(20):
            words = [2**62 + (int(rng.integers(2)) << 63), *rng.integers(2**60, 2**63, 2)]
            bits = Bits(tuple(int(w) << 128 for w in words), 192)
            shift = int(rng.integers(-5, 6))
            assert _reached(law, _moved(law, bits, shift)) == _reached(law, bits) + shift


def _reached(law: Any, bits: Any) -> Any:
    """The whole point of the proposal, kept or not."""
    E = [depth_proposals._exponential(w, bits.count) for w in bits.words[1:]]
    return depth_proposals._nearest(law, depth_proposals._facet(law, bits), E)[0]


def _moved(law: Any, bits: Any, shift: Any) -> Bits:
    """The bits with E changed so that x moves by `shift` whole points."""
    m = 1 - depth_proposals._facet(law, bits)
    change = law.eta * law.denominator * shift / law.simplex.edges[m][0]
    low, high = depth_proposals._exponential(bits.words[1 + m], bits.count)
    with localcontext() as context:
        context.prec = 80
        middle = (low + high) / 2 + change
        word = int((-Decimal(middle.numerator) / Decimal(middle.denominator)).exp() * 2**bits.count)
    words = list(bits.words)
    words[1 + m] = word
    return Bits(tuple(words), bits.count)


def test_simplices_lie_under_the_outlyingness() -> None:
    """All are h ≤ O, with multipliers above 0, corners where they should be, and the mass that is
    compared.
    """
    for name in SHAPES:
        program = program_of(name, 3)
        optimum = optimum_of(program)
        for make in SIMPLICES.values():
            simplex = make(program, optimum)
            assert min(simplex.shares) > 0
            assert sum(simplex.shares) == 1
            D = np.array([[float(v) for v in edge] for edge in simplex.edges])
            E = seeded(1).exponential(size=(4, 2000))
            E[seeded(2).integers(0, 4, 2000), np.arange(2000)] = 0
            x = np.array([float(v) for v in simplex.centre])[:, None] + D.T @ E
            h = float(simplex.lowest) + E.sum(axis=0)
            assert np.all(h <= outlyingness(program, x) + 1e-9 * np.abs(h))
            volume = abs(np.linalg.det(D[1:] - D[0]))
            assert simplex.log_mass(2.0) == pytest.approx(
                np.log(volume) - 2 * float(simplex.lowest)
            )


def test_the_best_simplex_keeps_at_least_as_many() -> None:
    """As where its exchanges start, and as the one whose mass is bounded."""
    for name in SHAPES:
        program = program_of(name, 3)
        optimum = optimum_of(program)
        start = of_basis(program, simplex_envelope._basis_of(program, optimum))
        best, bounded = (SIMPLICES[k](program, optimum) for k in ("the best", "bounded"))
        least = min(simplex.log_mass(float(ETA)) for simplex in (start, bounded))
        assert best.log_mass(float(ETA)) <= least + 1e-9


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("eta", [0.01, 5.0, 300.0])
def test_proposals_are_as_few_as_is_proved(d: int, eta: float) -> None:
    """Z_h of the bounded simplex, against a lower bound of Z_O: (1.02 e (d + ηf*))^d."""
    rng = seeded(d)
    for scales in (np.ones(30), 10.0 ** rng.uniform(0, 6, 30)):
        directions = np.rint(64 * rng.normal(size=(30, d))).astype(np.int64)
        m = [int(v) for v in UNIT * rng.normal(size=30)]
        program = Program(directions, m, m, [int(UNIT * s) for s in scales])
        optimum = optimum_of(program)
        J = list(largest_volume(program))
        a = directions / np.array(program.scale, float)[:, None]
        assert np.abs(a @ np.linalg.inv(a[J])).max() <= 1.02
        log_Z = bounded_simplex(program, optimum, eta).log_mass(eta)
        least = -eta * float(optimum.value) + d * np.log(2 / 1.02) - np.linalg.slogdet(a[J])[1]
        assert log_Z - least <= d * np.log(1.02 * np.e * (d + eta * float(optimum.value))) + 1e-9


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("d", [5, 8])
def test_many_dimensions_keep_enough_of_the_proposals(d: int) -> None:
    rng = seeded(d)
    data = np.rint(1e6 * rng.normal(size=(d, 4000)))
    directions = np.rint(1024 * rng.normal(size=(300, d))).astype(np.int64)
    found = IqrProjections.measure(data, directions.astype(float), 1)
    program = Program(directions, found.location, found.location, found.scale)
    eta = 20 * np.sqrt(d)
    law = target(program, envelope(program, optimum_of(program), eta), Fraction(eta))
    words = _sampler.words((d + 2) * 40_000).reshape(-1, 40_000)
    assert depth_proposals.possible(law, words).mean() > {5: 0.01, 8: 0.0005}[d]


@pytest.mark.slow
def test_degenerate_scales_have_a_draw() -> None:
    """Columns that repeat each other, whole columns of one value but for a few, scales 10¹²
    apart.
    """
    rng = seeded(7)
    for d in (2, 3, 5, 8):
        directions = np.vstack([np.eye(d), rng.normal(size=(3 * d, d))])
        directions = np.rint(64 * directions).astype(np.int64)
        for _ in range(12):
            scale = [int(v) for v in 10.0 ** rng.uniform(0, 12, len(directions))]
            m = [int(v) for v in 10.0 ** rng.uniform(0, 6, len(directions))]
            program = Program(directions, m, m, scale)
            optimum = optimum_of(program)
            eta = float(5 / max(optimum.value, Fraction(1, 100)))
            law = target(program, envelope(program, optimum, eta), Fraction(eta))
            words = _sampler.words((d + 2) * 64).reshape(-1, 64)
            for k in np.flatnonzero(depth_proposals.possible(law, words)).tolist():
                depth_proposals.decided(law, Bits(tuple(words[:, k].tolist()), 64))


@pytest.mark.slow
@pytest.mark.parametrize("size", [500, pytest.param(1500, marks=pytest.mark.audit)])
def test_a_draw_is_made_in_the_units_of_the_data(size: int) -> None:
    """Far from the origin, and of amounts in ninths: the same law, moved."""

    class Found:
        denominator = 9

    program = program_of("plain", 2)
    far = [10**9, -3 * 10**8]
    Found.location = [
        9 * (m + dot(u, far).numerator)
        for u, m in zip(program.directions.tolist(), program.lower, strict=True)
    ]
    Found.scale = [9 * s for s in program.scale]
    law = depth_draw.law(program.directions, Found, float(ETA))
    drawn = np.array([depth_proposals.draw(law) for _ in range(size)])
    assert p_value((drawn - far).T.astype(float), program) > 1e-7
