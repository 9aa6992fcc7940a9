# SPDX-License-Identifier: Apache-2.0
"""What can be drawn does not depend on the table: supports, exhaustively on small tables.

A draw whose support depends on the table loses everything by one output (Mironov 2012), however
small its ε.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.grid import Grid
from reticent_server.domain.private import Private
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import QuantileTree
from reticent_server.kinds.m_estimate.plan import plan_m_estimate
from reticent_server.kinds.m_estimate.query import MEstimateQuery
from reticent_server.mechanisms import _sampler, m_estimate, quantile_tree, selection
from reticent_server.mechanisms._sampler import DiscreteGaussian, Laplace

DRAWS = 4000
"""Of a window in which every whole number has a chance of .05 at least: one is missed less than
once in 10⁸⁰ runs.
"""


@pytest.mark.sample(4)
@pytest.mark.real_noise
@pytest.mark.parametrize("kind", [DiscreteGaussian, Laplace])
def test_noise_reaches_the_same_whole_numbers_from_every_value(kind: type) -> None:
    found = [
        set(kind(3.0).add(np.full(DRAWS, value, dtype=np.int64)).tolist()) for value in (-1, 0, 1)
    ]
    window = set(range(-2, 3))
    assert all(window <= each for each in found)


@pytest.mark.sample(4)
@pytest.mark.real_noise
@pytest.mark.parametrize("value", [0, 7, -7])
def test_no_whole_number_is_left_out_at_a_large_scale(value: int) -> None:
    """Noise of a large scale is not rounded to a coarser grid: every residue is drawn from every
    value.
    """
    for kind in (DiscreteGaussian, Laplace):
        drawn = kind(2.0**40).add(np.full(DRAWS, value, dtype=np.int64))
        assert set((drawn % 8).tolist()) == set(range(8))


LEVELS = (0, 1, 1 << 16, 70 << 16, 1 << 40)
SOME_LEVELS = [
    pytest.param(levels, marks=() if place % 3 == 0 else pytest.mark.audit)
    for place, levels in enumerate(product(LEVELS, repeat=3))
]
"""A third of them in the suite: 3 does not divide 5, so every level stands at every place."""
"""With Q = 2¹⁶: as good, a little worse, half as likely, 2⁻⁷⁰, and as rare as can be."""


def forced(levels: np.ndarray, ladder: selection.Ladder, wanted: int) -> Iterator[int]:
    """Uniform numbers at which `wanted` is proposed and kept."""
    octaves, mantissas = selection.weights(levels, ladder.bits)
    shifts = np.minimum(octaves - octaves.min(), 43)
    ceilings = -(-mantissas >> shifts)
    yield int(ceilings[:wanted].sum())
    yield 0


@pytest.mark.sample(20)
@pytest.mark.parametrize("levels", SOME_LEVELS)
def test_every_candidate_can_be_selected_at_any_levels(
    levels: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, ladder = np.array(levels, dtype=np.int64), selection.Ladder(1 << 16, 16)
    for wanted in range(3):
        numbers = forced(found, ladder, wanted)
        monkeypatch.setattr(_sampler, "below", lambda limit, n=numbers: min(next(n), limit - 1))
        monkeypatch.setattr(_sampler, "words", lambda count: np.zeros(count, dtype=np.uint64))
        assert selection.select(Private(found), ladder) == wanted


class Chosen:
    """In the place of selection: gives the candidates of a path, and knows how many there were to
    choose from.
    """

    def __init__(self, path: tuple[int, ...]) -> None:
        self.path, self.sizes = path, list[int]()

    def __call__(self, levels: Private[np.ndarray], ladder: selection.Ladder) -> int:
        octaves, mantissas = selection.weights(levels.unwrap(), ladder.bits)
        assert (mantissas > 0).all()
        assert (octaves >= 0).all()
        self.sizes.append(len(mantissas))
        return self.path[len(self.sizes) - 1] if len(self.sizes) <= len(self.path) else 0


def reachable(run: object, monkeypatch: pytest.MonkeyPatch) -> set[tuple[float, ...]]:
    """Every output of a mechanism, over all paths of its selections."""
    outputs, waiting = set(), [()]
    while waiting:
        path = waiting.pop()
        chosen = Chosen(path)
        monkeypatch.setattr(selection, "select", chosen)
        outputs.add(tuple(run().values.tolist()))  # type: ignore[operator]
        depth = len(path)
        if depth < len(chosen.sizes):
            waiting += [(*path, k) for k in range(chosen.sizes[depth])]
    return outputs


CELLS = 4
TABLES = list(product(range(CELLS), repeat=3))


@pytest.mark.slow
def test_quantiles_reach_the_same_outputs_from_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    part = QuantileTree(Grid(0.0, CELLS - 1.0, integers=True), (0.25, 0.75), RHO_UNITS)
    found = {
        frozenset(
            reachable(
                lambda t=table: quantile_tree.release(
                    part, Private(np.bincount(t, minlength=CELLS).astype(np.int64))
                ),
                monkeypatch,
            )
        )
        for table in TABLES
    }
    pairs = {(float(i), float(j)) for i in range(CELLS) for j in range(i + 1, CELLS)}
    last = float(CELLS - 1)
    assert found == {frozenset(pairs | {(last, last)})}


@pytest.mark.parametrize("base", ["uniform", "cauchy"])
def test_m_estimates_reach_the_same_outputs_from_every_table(
    base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = Column("x", ColumnKind.NUMERIC, 0.0, float(CELLS))
    facts = DatasetFacts("d", "d", 1, "v", 3, Schema(columns=(column,)))
    query = MEstimateQuery(column="x", tuning=0.5, base=base, lower=0.0, upper=float(CELLS))
    part = replace(plan_m_estimate(facts, column, query, EPSILON_UNITS).part, cells=8)
    found = {
        frozenset(
            reachable(
                lambda t=table: m_estimate.release(part, Private(np.array([t], dtype=float))),
                monkeypatch,
            )
        )
        for table in TABLES
    }
    assert len(found) == 1
    assert next(iter(found)) == {(point,) for point in m_estimate.candidates(part).tolist()}
