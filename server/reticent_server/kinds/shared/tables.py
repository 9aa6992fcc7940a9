# SPDX-License-Identifier: Apache-2.0
"""Histograms and contingency tables: noisy counts of the records in use by bin, level or cell.

A record in use adds 1 to at most one cell, so replacing one moves the counts by at most √2 in L2
(with m rows of a unit, √2 m); all cells get discrete Gaussian noise of one public scale
(mechanisms.noisy_sum). Where every record of the data set is in some cell, as the question's public
terms tell, the cells add up to the public number of records, and are given so
(numerics.known_total). Counts are unbiased and can be negative. An interval is for the count in
this table, so the noise alone widens it. Privacy: mechanisms.noisy_sum, CountSum. Source: Dwork &
Smith (2009), Theorem 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, CountSum, FloatArray, Released, SumStep
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.shared.one_row import Which, one_row_map, one_row_part
from reticent_server.mechanisms import noisy_sum
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.known_total import with_total
from reticent_server.numerics.level_places import level_places

_CELLS_A_MS = 20  # planned: cells of a table that take 1 ms; measured: 70
MAX_CELLS = 4096  # of a table: beyond it most cells of a table of people are empty


@dataclass(frozen=True, slots=True)
class Axis:
    """One margin of a table: some whole values of a column, `stored` and with their names, or its
    bins between `edges`.

    A bin holds its lower edge, the last one also its upper edge. whole: whether no declared value
    lies outside.
    """

    column: str
    size: int
    stored: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    whole: bool = True

    def codes(self, values: FloatArray) -> FloatArray:
        """(rows,) positions 0..size−1; others, and what is not finite, lie outside."""
        if not self.edges:
            return level_places(self.stored, values).astype(np.float64)
        edges = np.asarray(self.edges)
        codes = np.searchsorted(edges, values, side="right") - 1.0
        return np.where(values == edges[-1], self.size - 1.0, codes)


@dataclass(frozen=True, slots=True)
class CellMap:
    """(rows,) cell of a record in the table, axis by axis; −1 where it is in none."""

    design: Design
    axes: tuple[Axis, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        inside = in_use(self.design, block)
        cells = np.zeros(block.rows)
        for axis in self.axes:
            codes = axis.codes(block.columns[axis.column])
            inside &= (codes >= 0) & (codes < axis.size)
            cells = cells * axis.size + codes
        return (np.where(inside, cells, -1.0),)


@dataclass(frozen=True, slots=True)
class TablePlan(Planned):
    """A planned table over one or more axes; kinds say what they make of the released cells."""

    design: Design
    axes: tuple[Axis, ...]
    part: CountSum
    n: int
    per: Which | None = field(default=None, kw_only=True)

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.design.columns,
            rho=self.part.rho,
            mechanism="discrete Gaussian counts",
            reference="Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)",
            column_ms=self.part.bins // _CELLS_A_MS,
            # m rows that count alike are the farthest that a person's sum can be
            of_persons=True,
            gaussian_counts=(self.part,),
        )

    @property
    def adds_up(self) -> bool:
        """Whether the cells hold all n records, whatever the table: one row each, none out of use,
        none outside."""
        alone = self.part.unit_rows == self.part.person_rows == 1
        return alone and not self.design.masked and all(axis.whole for axis in self.axes)

    @property
    def noise(self) -> float:
        """The standard error of one count."""
        shared = 1 / self.part.bins if self.adds_up else 0.0
        return noisy_sum.noise_sd(self.part) * sqrt(1 - shared)

    def counts(self, released: Released) -> Released:
        """The cells, given their sum where it is public."""
        return with_total(released, self.n) if self.adds_up else released

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of one count."""
        return single("count", self.noise, 0.0)

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {"privacy_standard_error": self.noise, "cells": self.part.bins}

    @property
    def step(self) -> SumStep:
        """The one step, which releases the cells."""
        cells = CellMap(self.design, self.axes)
        map_fn = one_row_map(cells, self.design, self.per, self.part.person_rows)
        return SumStep("table", (self.part,), map_fn)


def cells_part(
    facts: DatasetFacts, axes: tuple[Axis, ...], rho: int, per: Which | None = None
) -> CountSum:
    """The counts of a table's cells at `rho` (RHO_UNITS). Raises InvalidQuery where there are too
    many."""
    cells = prod(axis.size for axis in axes)
    if cells > MAX_CELLS:
        raise InvalidQuery(
            f"The table would have more than {MAX_CELLS} cells: name fewer columns, or columns of "
            "fewer levels."
        )
    return one_row_part(CountSum(cells, rho, facts.schema.unit.max_rows), per)


def level_axis(column: Column) -> Axis:
    """One position for each declared level, or whole number between the bounds, that the question's
    condition does not exclude; of more than MAX_CELLS the first ones alone are listed. Raises
    InvalidQuery where it excludes all of them."""
    if not column.kind.is_whole:
        raise InvalidQuery(
            f"{column.name} is numeric, without levels: name a categorical, boolean or integer "
            "column."
        )
    if column.size < 1:
        raise InvalidQuery(f"where excludes every value of {column.name}: change the condition.")
    stored = column.values(MAX_CELLS)
    names = (column.levels[int(v)] if column.levels else f"{v:g}" for v in stored)
    return Axis(column.name, column.size, stored, tuple(names))
