# SPDX-License-Identifier: Apache-2.0
"""Exact linear algebra and exact optima: against floating point, by duality, and where it is
degenerate.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from reticent_server.kinds.depth_median.plan import MOST_DIRECTIONS, public_directions
from reticent_server.numerics import minimax
from reticent_server.numerics.minimax import Program, signed_basis, smallest_maximum
from reticent_server.numerics.rational_matrices import dot, exchanged, inverse, times
from support.seeds import seeded


def test_inverses_are_exact_and_follow_an_exchange() -> None:
    rows = [[3, 1, -2], [0, 5, 7], [2, -4, 10**20]]
    solved = inverse(rows)
    assert [[dot(row, column) for column in zip(*solved, strict=True)] for row in rows] == [
        [1, 0, 0], [0, 1, 0], [0, 0, 1],
    ]  # fmt: skip
    assert times(solved, times_of(rows, [1, 1, 1])) == [1, 1, 1]
    new = [1, Fraction(1, 3), 4]
    share = [dot(new, column) for column in zip(*solved, strict=True)]
    assert exchanged(solved, 1, share) == inverse([rows[0], new, rows[2]])
    assert inverse([[1, 2], [2, 4]]) is None


def times_of(rows: Any, vector: Any) -> list[Any]:
    return [dot(row, vector) for row in rows]


def programs(d: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Programs of ordinary, tied, flat, far-off and hugely different numbers."""
    U = np.array(public_directions(d, 40))
    K = len(U)
    centre = U @ rng.integers(-(10**6), 10**6, d)
    spread = rng.integers(1, 10**6, K)
    noise = rng.integers(-(10**5), 10**5, K)
    kinds = {
        "ordinary": (centre + noise, 0 * noise, spread),
        "ranges": (centre + noise, rng.integers(0, 10**5, K), spread),
        "exact": (centre, 0 * noise, spread),
        "tied": (np.sign(noise), np.abs(np.sign(noise)), np.ones(K, int)),
        "steep": (noise, 0 * noise, 10 ** rng.integers(0, 12, K)),
    }
    for name, (lower, width, scale) in kinds.items():
        low, high, s = ([int(v) for v in x] for x in (lower, lower + width, scale))
        yield name, Program(U, low, high, s)
    big = 10**25
    yield "big", Program(U, [v * big + 1 for v in centre.tolist()],
        [v * big + 7 for v in centre.tolist()],
                         [v * big for v in spread.tolist()])  # fmt: skip


def value_at(program: Any, x: Any) -> Any:
    """max over all functions at a point, exactly."""
    ends = zip(
        program.directions.tolist(), program.lower, program.upper, program.scale, strict=True
    )
    return max(max(dot(u, x) - low, high - dot(u, x)) / s for u, low, high, s in ends)


@pytest.mark.sample(4)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_optima_are_exact(d: int) -> None:
    """The point has the value, and multipliers prove that no point has less."""
    rng = seeded(d)
    for _, program in programs(d, rng):
        found = smallest_maximum(program, signed_basis(program.directions))
        assert value_at(program, found.point) == found.value
        rows = [program.row(i) for i in found.basis]
        multipliers = [-v for v in found.inverse[-1]]
        assert min(multipliers) >= 0
        assert [dot(multipliers, column) for column in zip(*rows, strict=True)] == [0] * d + [-1]
        assert -dot(multipliers, [program.limit(i) for i in found.basis]) == found.value
        again = smallest_maximum(program, found.basis)
        assert (again.value, again.basis) == (found.value, found.basis)


@pytest.mark.parametrize("d", [2, 5])
def test_optima_are_those_of_a_solver_in_floating_point(d: int) -> None:
    for name, program in programs(d, seeded(d)):
        if name in {"ordinary", "ranges", "tied"}:
            s = np.array(program.scale, float)[:, None]
            U, ones = program.directions / s, -np.ones((program.count, 1))
            ends = np.array(program.lower) / s[:, 0], -np.array(program.upper) / s[:, 0]
            expected = linprog(
                [0.0] * d + [1.0], np.block([[U, ones], [-U, ones]]), np.concatenate(ends),
                bounds=[(None, None)] * (d + 1),
            )  # fmt: skip
            found = smallest_maximum(program, signed_basis(program.directions))
            assert float(found.value) == pytest.approx(expected.fun, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("d", [2, 3])
def test_blands_rule_ends_too_and_finds_the_same(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimax, "MOST_PIVOTS", 0)
    for _, program in programs(d, seeded(9)):
        slow = smallest_maximum(program, signed_basis(program.directions))
        monkeypatch.undo()
        assert slow.value == smallest_maximum(program, signed_basis(program.directions)).value
        monkeypatch.setattr(minimax, "MOST_PIVOTS", 0)


@pytest.mark.sample(4)
@pytest.mark.parametrize("d", range(1, 9))
def test_all_planned_directions_have_a_basis_whatever_the_data(d: int) -> None:
    for number in {2 * d, 2 * d + 1, 40, 500, MOST_DIRECTIONS}:
        U = np.array(public_directions(d, number))
        basis = signed_basis(U)
        signed = [(1 if i < len(U) else -1) * U[i % len(U)] for i in basis]
        kernel = inverse([[int(v) for v in row] + [-1] for row in signed])[-1]
        assert all(v < 0 for v in kernel)


def test_directions_that_do_not_span_have_no_basis() -> None:
    assert signed_basis(np.array([[1, 0], [2, 0], [0, 3]])) is None
    assert signed_basis(np.array([[1, 2], [2, 4], [-1, -2]])) is None
    for signs in product((1, -1), repeat=2):
        assert signed_basis(np.array([[1, 0], [0, 1], signs])) is not None
