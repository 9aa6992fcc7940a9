"""Histograms and contingency tables: noisy counts of the records in use by bin, level or cell.

A record in use adds 1 to at most one cell, so replacing one moves the counts by at most √2 in L2
(with m rows of a unit, √2 m); all cells get discrete Gaussian noise of one public scale
(mechanisms.noisy_sum). Counts are unbiased and can be negative. An interval is for the count in this
table, so the noise alone widens it. A two-way table also carries a test of independence with the noise
in its null law (numerics.independence): post-processing, free.

Privacy: mechanisms.noisy_sum, CountSum. Source: Dwork & Smith (2009), Theorem 6.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import isfinite, prod
from typing import Any

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import Block, CountSum, FloatArray, Released, SumStep
from reticent_server.errors import InvalidQuery
from reticent_server.mechanisms import noisy_sum
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.independence import independence_test

CONFIDENCE = 0.95
MAX_CELLS = 4096


@dataclass(frozen=True, slots=True)
class Axis:
    """One margin of a table: a column's whole values from `lower` on, or its bins between `edges`.

    A bin holds its lower edge, the last one also its upper edge.
    """

    column: str
    size: int
    lower: float
    levels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()

    def codes(self, values: FloatArray) -> FloatArray:
        """(rows,) positions 0..size−1; others, and what is not finite, lie outside."""
        if not self.edges:
            return np.asarray(values - self.lower)
        edges = np.asarray(self.edges)
        found = np.searchsorted(edges, values, side="right") - 1.0
        return np.where(values == edges[-1], self.size - 1.0, found)


@dataclass(frozen=True, slots=True)
class _CellMap:
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
class TablePlan:
    """A planned table over one or more axes; satisfies EstimatorPlan."""

    design: Design
    axes: tuple[Axis, ...]
    part: CountSum
    n: int
    passes: int = 1
    mechanism: str = "discrete Gaussian counts"
    reference: str = "Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def rho(self) -> int:
        return self.part.rho

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {"privacy_standard_error": noisy_sum.noise_sd(self.part), "cells": self.part.bins}

    def run(self) -> Recipe:
        """One step; a histogram has one axis, a contingency table nested values."""
        (counts,) = yield SumStep("table", (self.part,), _CellMap(self.design, self.axes))
        return self._histogram(counts) if len(self.axes) == 1 else self._crosstab(counts)

    def _histogram(self, counts: Released) -> dict[str, Any]:
        (axis,) = self.axes
        where = {"edges": list(axis.edges)} if axis.edges else {"levels": list(axis.levels)}
        half = _half_width(counts.sd)
        intervals = [[max(0.0, v - half), max(0.0, v + half)] for v in counts.values.tolist()]
        return {
            **where,
            "values": counts.values.tolist(),
            "standard_error": counts.sd,
            "confidence_level": CONFIDENCE,
            "confidence_intervals": intervals,
            "n": self.n,
        }

    def _crosstab(self, counts: Released) -> dict[str, Any]:
        table = counts.values.reshape([axis.size for axis in self.axes])
        test = None
        if table.ndim == 2 and min(table.shape) > 1:
            test = asdict(independence_test(table, counts.sd))
        return {
            "columns": [axis.column for axis in self.axes],
            "levels": [list(axis.levels) for axis in self.axes],
            "values": table.tolist(),
            "standard_error": counts.sd,
            "confidence_level": CONFIDENCE,
            "interval_half_width": _half_width(counts.sd),
            "independence": test,
            "n": self.n,
        }


def _half_width(sd: float) -> float:
    return float(ndtri((1 + CONFIDENCE) / 2)) * sd


def plan_histogram(
    facts: DatasetFacts, design: Design, column: Column, bins: tuple[float, ...] | None, rho: int
) -> TablePlan:
    """Counts by bin of public edges, or by value where there are none, at `rho` (RHO_UNITS)."""
    axis = level_axis(column) if bins is None else _binned_axis(column, bins)
    return _plan(facts, design, (axis,), rho)


def plan_crosstab(
    facts: DatasetFacts, design: Design, columns: tuple[Column, ...], rho: int
) -> TablePlan:
    """Counts by the values of two or more different columns, at `rho` (RHO_UNITS)."""
    if len(columns) < 2 or len({c.name for c in columns}) < len(columns):
        raise InvalidQuery("A crosstab needs two or more different columns.")
    return _plan(facts, design, tuple(map(level_axis, columns)), rho)


def _plan(facts: DatasetFacts, design: Design, axes: tuple[Axis, ...], rho: int) -> TablePlan:
    cells = prod(axis.size for axis in axes)
    if cells > MAX_CELLS:
        raise InvalidQuery(f"The table would have more than {MAX_CELLS} cells.")
    return TablePlan(design, axes, CountSum(cells, rho, facts.schema.unit.max_rows), facts.n)


def level_axis(column: Column) -> Axis:
    """One position for each declared level or whole number between the bounds."""
    if column.kind is ColumnKind.NUMERIC:
        raise InvalidQuery("A numeric column needs bins: give their edges, in increasing order.")
    if column.levels:
        return Axis(column.name, len(column.levels), 0.0, column.levels)
    size = int(column.upper - column.lower) + 1
    shown = tuple(f"{column.lower + k:g}" for k in range(min(size, MAX_CELLS)))
    return Axis(column.name, size, column.lower, shown)


def _binned_axis(column: Column, edges: tuple[float, ...]) -> Axis:
    if column.kind is ColumnKind.CATEGORICAL:
        raise InvalidQuery("A categorical column has levels; leave bins out.")
    if len(edges) < 2 or not all(map(isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise InvalidQuery("bins must be two or more finite edges in increasing order.")
    return Axis(column.name, len(edges) - 1, 0.0, (), edges)
