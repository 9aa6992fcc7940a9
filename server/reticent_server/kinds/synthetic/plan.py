# SPDX-License-Identifier: Apache-2.0
"""Planned tables of cliques: one step with a noisy table of each, all at the same ρ.

Privacy. Each table is a CountSum: a record in use adds 1 to one of its cells, so replacing one
moves it by at most √2 in L2 (with m rows of a unit √2 m), whatever the other tables say of the
record (mechanisms.noisy_sum). Tables compose by zCDP: the charge is the sum of their ρ. Nothing
smaller would do: two records that differ in every column are in different cells of every table, so
that all tables move by √2 at once, and with equal noise σ the joint loss is T·2/(2σ²), which is the
charge (tests/privacy/test_synthetic_privacy.py attains it). Which tables there are, and their
cells, are public: the analyst's cliques or every pair, declared levels, whole numbers, and bins
between the released quantiles of the profile.

Each table has the records with no missing cell in its own columns. Where these are all n, its cells
add up to n and are given so (numerics.known_total). What clients make of the tables is
post-processing. Sources: Dwork & Smith (2009), Theorem 6; McKenna, Miklau & Sheldon (2021),
"Winning the NIST contest", for cliques.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import ceil
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import (
    Block,
    Contribution,
    CountSum,
    FloatArray,
    Released,
    SumStep,
)
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.fitting.results import Size
from reticent_server.kinds.shared.columns import declared, mask
from reticent_server.kinds.shared.group_bins import public_edges
from reticent_server.kinds.shared.tables import Axis, cells_part, level_axis
from reticent_server.mechanisms import noisy_sum
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.known_total import with_total

MAX_TABLES = 128  # every pair of 16 columns, and some
MAX_TOTAL = 1 << 14  # cells of all tables: a reply of some 700 kB, most of it names of cells
_FEW = 32  # whole numbers that have a cell each: months, days and hours do
_CELLS_A_MS = 20  # planned: cells of tables that take 1 ms; measured: 70
_COUNT_NANOSECONDS = 50  # of a record in a table, planned for each column; measured: 10 to 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticLevel:
    """A level of a column, and the number that stands for it: a whole number, or the middle of a
    bin of the values from `lower` to `upper`; null where levels are no numbers, or no bins.
    """

    column: str
    level: str
    number: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CliqueTable:
    """Noisy counts (cells,) of a clique, its last column's levels running fastest; they are
    unbiased, and some may be negative. cells: their names, the levels with × between. total: the
    number that they add up to, where it is public.
    """

    columns: list[str]
    cells: list[str]
    values: list[float]
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticResult:
    """Tables of cliques, and the levels of each column in order. standard_error: of the noise in
    one cell of any table, before its sum is put in.
    """

    levels: list[SyntheticLevel]
    tables: list[CliqueTable]
    standard_error: Size
    n: int


@dataclass(frozen=True, slots=True)
class Clique:
    """One table: its axes and its counts. whole: whether all records are in it, whatever they
    are.
    """

    whole: bool
    axes: tuple[Axis, ...]
    part: CountSum

    @property
    def adds_up(self) -> bool:
        """Whether the cells hold all n records, whatever the table is."""
        alone = self.part.unit_rows == 1 and self.whole
        return alone and all(axis.whole for axis in self.axes)

    def table(
        self, released: Released, n: int, levels: Mapping[str, Sequence[SyntheticLevel]]
    ) -> CliqueTable:
        """Of its released cells. levels: by column."""
        cells = product(*((row.level for row in levels[axis.column]) for axis in self.axes))
        given = with_total(released, n) if self.adds_up else released
        return CliqueTable(
            columns=[axis.column for axis in self.axes],
            cells=list(map(" × ".join, cells)),
            values=given.values.tolist(),
            total=n if self.adds_up else None,
        )


@dataclass(frozen=True, slots=True)
class CliquesMap:
    """(rows,) cell of a record in each table; −1 where it is in none.

    where: which records are looked at, read once for all tables. columns: each one's axis, and
    which of its cells are missing. cliques: the axes of each table.
    """

    where: Design
    columns: tuple[tuple[Design, Axis], ...]
    cliques: tuple[tuple[Axis, ...], ...]

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        used = in_use(self.where, block)
        codes = {axis.column: _codes(present, axis, block) for present, axis in self.columns}
        return tuple(_cells(axes, codes, used) for axes in self.cliques)


def _codes(present: Design, axis: Axis, block: Block) -> FloatArray:
    """(rows,) positions on the axis; NaN where a cell is missing or lies outside."""
    codes = axis.codes(block.columns[axis.column])
    inside = in_use(present, block) & (codes >= 0) & (codes < axis.size)
    return np.where(inside, codes, np.nan)


def _cells(
    axes: tuple[Axis, ...], codes: Mapping[str, FloatArray], used: NDArray[np.bool_]
) -> FloatArray:
    cells = codes[axes[0].column]
    for axis in axes[1:]:
        cells = cells * axis.size + codes[axis.column]
    return np.where(used & np.isfinite(cells), cells, -1.0)


@dataclass(frozen=True, slots=True)
class SyntheticPlan(Planned):
    """Planned tables. declared: the columns, in the order of the question."""

    deadline_shares: ClassVar = (0.05, 0.3)

    declared: tuple[Column, ...]
    map_fn: CliquesMap
    cliques: tuple[Clique, ...]
    n: int

    @property
    def outline(self) -> Outline:
        counted = sum(len(clique.axes) for clique in self.cliques)
        cells = sum(part.bins for part in self._parts)
        read = [column.name for column in self.declared]
        return Outline(
            columns=tuple(dict.fromkeys([*read, *self.map_fn.where.columns])),
            rho=sum(part.rho for part in self._parts),
            mechanism="discrete Gaussian counts",
            reference="Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)",
            parts=self._parts,
            column_ms=ceil(self.n * counted * _COUNT_NANOSECONDS / 10**6) + cells // _CELLS_A_MS,
            gaussian_counts=self._parts,
        )

    @property
    def _parts(self) -> tuple[CountSum, ...]:
        return tuple(clique.part for clique in self.cliques)

    @property
    def noise(self) -> float:
        """The standard error of one count: the largest of the tables', which have equal ρ."""
        return max(noisy_sum.noise_sd(part) for part in self._parts)

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of one count."""
        return single("count", self.noise, 0.0)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise of one count, and the size of what comes."""
        cells = sum(part.bins for part in self._parts)
        return {"privacy_standard_error": self.noise, "tables": len(self.cliques), "cells": cells}

    def run(self) -> Recipe:
        """One step."""
        released = yield SumStep("cliques", self._parts, self.map_fn)
        levels = {
            axis.column: _levels(column, axis)
            for column, (_, axis) in zip(self.declared, self.map_fn.columns, strict=True)
        }
        return SyntheticResult(
            levels=list(chain.from_iterable(levels.values())),
            tables=[
                clique.table(of, self.n, levels)
                for clique, of in zip(self.cliques, released, strict=True)
            ],
            standard_error=self.noise,
            n=self.n,
        )


def plan_synthetic(
    facts: DatasetFacts,
    names: tuple[str, ...],
    cliques: tuple[tuple[str, ...], ...] | None,
    bins: int,
    where: str | None,
    rho: int,
) -> SyntheticPlan:
    """Tables of the cliques, or of every pair, at `rho` (RHO_UNITS) together. Raises InvalidQuery,
    InvalidPrivacy.
    """
    columns = tuple(declared(facts, name) for name in names)
    axes = {c.name: _axis(facts, c, bins) for c in columns}
    if len(axes) < len(names):
        raise InvalidQuery("columns names a column twice.")
    sets = _cliques(names, cliques)
    share = rho // len(sets)
    if share < 1:
        raise InvalidPrivacy("epsilon is too small for so many tables; raise it, or name fewer.")
    used = mask(facts, where)
    present = {name: mask(facts, None, name) for name in names}
    planned = tuple(
        Clique(
            whole=not used.masked and not any(present[name].masked for name in of),
            axes=tuple(axes[name] for name in of),
            part=cells_part(facts, tuple(axes[name] for name in of), share),
        )
        for of in sets
    )
    if sum(clique.part.bins for clique in planned) > MAX_TOTAL:
        raise InvalidQuery(
            f"The tables would have more than {MAX_TOTAL} cells together; name fewer, or fewer "
            "bins."
        )
    map_fn = CliquesMap(
        used,
        tuple((present[name], axes[name]) for name in names),
        tuple(clique.axes for clique in planned),
    )
    return SyntheticPlan(columns, map_fn, planned, facts.n)


def _cliques(
    names: tuple[str, ...], cliques: tuple[tuple[str, ...], ...] | None
) -> tuple[tuple[str, ...], ...]:
    """Those that are counted: what is named and lies in no other, and each column that is left."""
    if cliques is None:
        return tuple(combinations(names, 2))
    if any(len(set(of)) < len(of) for of in cliques):
        raise InvalidQuery("A clique names a column twice.")
    if not {name for of in cliques for name in of} <= set(names):
        raise InvalidQuery("A clique names a column that columns does not have.")
    different = list({frozenset(of): of for of in cliques}.values())
    kept = [of for of in different if not any(set(of) < set(other) for other in different)]
    inside = {name for of in kept for name in of}
    found = (*kept, *((name,) for name in names if name not in inside))
    if len(found) > MAX_TABLES:
        raise InvalidQuery(f"There would be more than {MAX_TABLES} tables; name fewer cliques.")
    return found


def _axis(facts: DatasetFacts, column: Column, bins: int) -> Axis:
    few = column.kind.is_whole and column.upper - column.lower < _FEW
    if column.levels or few:
        return level_axis(column)
    inner = public_edges(facts, column, bins)
    inside = tuple(edge for edge in inner if column.lower < edge < column.upper)
    edges = (column.lower, *inside, column.upper)
    return Axis(column.name, len(edges) - 1, (), (), edges)


def _levels(column: Column, axis: Axis) -> list[SyntheticLevel]:
    if axis.edges:
        return _bins(column, axis)
    return [
        SyntheticLevel(
            column=axis.column,
            level=level,
            number=None if column.levels else value,
            lower=None,
            upper=None,
        )
        for value, level in zip(axis.stored, axis.levels, strict=True)
    ]


def _bins(column: Column, axis: Axis) -> list[SyntheticLevel]:
    """The values that each bin can hold: of whole numbers up to the one before the next bin."""
    step = 1.0 if column.kind.is_whole else 0.0
    ends = [*(edge - step for edge in axis.edges[1:-1]), axis.edges[-1]]
    digits = 6 if len({f"{edge:g}" for edge in axis.edges}) == len(axis.edges) else 15
    return [
        SyntheticLevel(
            column=axis.column,
            level=f"{low:.{digits}g} to {end:.{digits}g}",
            number=(low + end) / 2,
            lower=low,
            upper=end,
        )
        for low, end in zip(axis.edges[:-1], ends, strict=True)
    ]
