# SPDX-License-Identifier: Apache-2.0
"""Sums over a part of the rows: neighbours in it, outside it and across it, as the engine adds
them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.grid import Grid
from reticent_server.domain.private import Private
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import CountSum, GramSum, QuantileTree, SumStep, VectorSum
from reticent_server.engine.blocks import Table
from reticent_server.engine.partition import sums_of_parts
from reticent_server.mechanisms import noisy_sum
from support.seeds import seeded

N = 200
SUBSET = RowSubset(4, b"of one release")
INSIDE = SUBSET.positions(0, N)
OUTSIDE = np.setdiff1d(np.arange(N), INSIDE)
SCHEMA = Schema(tuple(Column(name, ColumnKind.NUMERIC, -1e9, 1e9) for name in "xy"))
EXTREMES = (-1e9, -1.0, -0.3, 0.0, 1e-9, 0.7, 1e9, np.inf, np.nan)


@dataclass(frozen=True)
class Reader:
    x: np.ndarray
    y: np.ndarray
    n: int = N

    def batches(self, columns: Any) -> Iterator[Any]:
        for low in range(0, N, 67):
            cut = {name: pa.array(getattr(self, name)[low : low + 67]) for name in columns}
            yield Private(pa.RecordBatch.from_pydict(cut))


@dataclass(frozen=True)
class Map:
    """No clipping here: that is for the primitive to do."""

    def __call__(self, block: Any) -> tuple[Any, Any, Any, Any]:
        vectors = np.stack([block.columns["x"], block.columns["y"]])
        codes = np.where(block.columns["x"] < 0, 0.0, 1.0)
        return vectors, vectors, codes, codes


def step(m: Any, subset: Any = SUBSET) -> SumStep:
    parts = (
        VectorSum(2, 1.0, 10**9, m),
        GramSum(2, 1.0, 10**9, m),
        CountSum(2, 10**9, m),
        QuantileTree(Grid(0.0, 1.0, integers=True), (0.5,), 10**9, m),
    )
    return SumStep("attacked", parts, Map(), subset)


def sums(x: Any, y: Any, m: Any, subset: Any = SUBSET) -> Any:
    return sums_of_parts([Table(Reader(x, y), "v", SCHEMA, ("x", "y"))], step(m, subset), 64, 0)


def shares(a: Any, b: Any, m: Any) -> list[Any]:
    """Distances of neighbours' sums, in shares of what the parts are charged for."""
    *noisy, tree = zip(step(m).parts, a, b, strict=True)
    found = [np.sqrt(np.sum((u - v) ** 2.0)) / noisy_sum.sensitivity(p) for p, u, v in noisy]
    part, u, v = tree
    return [*found, np.abs(u - v).sum() / (2 * part.unit_rows)]


def pairs(rng: np.random.Generator, places: Any, tries: int = 100) -> Iterator[Any]:
    """Tables that differ in the records at `places`, by extreme values: often the same in all."""
    for _ in range(tries):
        x, y = rng.normal(size=(2, N))
        x2, y2 = x.copy(), y.copy()
        values = rng.choice([1, len(places)])
        for left, right in ((x, x2), (y, y2)):
            left[places], right[places] = rng.choice(EXTREMES, (2, values))
        yield (x, y), (x2, y2)


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("inside", [0, 1, 3])
def test_no_pair_of_neighbours_differs_by_more_than_is_charged(m: int, inside: int) -> None:
    rng = seeded([m, inside])
    kept = min(inside, m)
    places = np.r_[rng.choice(INSIDE, kept, replace=False), rng.choice(OUTSIDE, m - kept)]
    largest = np.zeros(4)
    for left, right in pairs(rng, places):
        largest = np.maximum(largest, shares(sums(*left, m), sums(*right, m), m))
    assert (largest <= 1).all(), largest
    if kept == 0:
        assert (largest == 0).all(), "the subset tells nothing about other rows"
    if kept == m:
        assert (largest > 0.9).all(), "the search comes close to what is charged"


def test_which_rows_are_added_does_not_depend_on_them() -> None:
    """All records but one far away, or in the reverse order: the same positions count."""
    ones = np.ones(N)
    for x in (ones, -ones, np.where(np.arange(N) == INSIDE[0], 1e9, 0.0), np.full(N, np.nan)):
        assert sums(x, ones, 1)[3].sum() == len(INSIDE)
