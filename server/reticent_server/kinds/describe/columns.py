# SPDX-License-Identifier: Apache-2.0
"""The three sorts of columns that are described: levels, few whole numbers, and other numbers.

- Levels (categorical, boolean, whole numbers 0 and 1): counts.
- Few whole numbers: counts, of which mean, spread and quartiles are made. The noise of a mean of B
  even values over [−h, h] is σh√(B/3) from counts at 2ρ, Δ = √2, and 2h/√(2ρ) from a sum at ρ: with
  up to FEW values, counts are better.
- Other numbers: half of their ρ for sums of values over the declared bounds, as the kind `mean`,
  half for counts by public bin. A narrower clip would have less noise and answer for a part of the
  column: of wealth, with a long tail, it took half of the standard deviation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, floor, sqrt
from typing import Any

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Contribution, FloatArray, GramSum, Part
from reticent_server.fitting.trust import clear
from reticent_server.kinds.describe.cells import Cells, quartiles, share, whole_quartiles
from reticent_server.kinds.describe.measure import ColumnMeasure, ColumnReleases, GroupedRows
from reticent_server.kinds.describe.moments import NoisyMoments
from reticent_server.kinds.shared.group_bins import public_edges
from reticent_server.kinds.shared.groups import (
    Groups,
    moments,
    moments_part,
    unit_of,
    weight,
    weighted_values,
)
from reticent_server.kinds.shared.ranges import ClipRange, clip_range, declared_range
from reticent_server.kinds.shared.tables import Axis, level_axis

FEW = 12  # values: √(12/3) = 2
# of a histogram: quartiles need 8, and more than 20 quantiles are not released
LEAST_BINS, MOST_BINS = 8, 20
VISIBLE = 4.0  # standard deviations of the noise that an even share of a group is to have


@dataclass(frozen=True, slots=True)
class LevelsMeasure(ColumnMeasure):
    """A column of levels."""

    def figures(self, cells: Cells, found: ColumnReleases, place: int) -> Mapping[str, Any]:  # noqa: ARG002
        one = np.eye(self.cells)[: self.axis.size]
        return {"shares": [share(cells, a, self.present) for a in one]}


@dataclass(frozen=True, slots=True)
class WholeMeasure(ColumnMeasure):
    """A column of few whole numbers."""

    @property
    def weight(self) -> int:
        """As other numbers, for as much precision."""
        return 2

    def parts(self, facts: DatasetFacts, groups: Groups, rho: int) -> tuple[Part, ...]:
        return super(WholeMeasure, self).parts(facts, groups, 2 * rho)

    def figures(self, cells: Cells, found: ColumnReleases, place: int) -> Mapping[str, Any]:  # noqa: ARG002
        values = np.asarray(self.axis.stored)
        noisy = self._moments(cells, values)
        return {
            "mean": noisy.mean,
            "standard_deviation": noisy.standard_deviation,
            "quartiles": whole_quartiles(cells, self.present, values),
        }

    def _moments(self, cells: Cells, values: FloatArray) -> NoisyMoments:
        d, span = self.present, _whole_range(self.column)
        N = cells.number(d)
        z = np.zeros(self.cells)
        z[: self.axis.size] = (values - span.centre) / span.half
        m = float(np.clip(z @ cells.counts / N, -1.0, 1.0))
        away = (z - m) * d
        s2 = float(np.clip(away**2 @ cells.counts / N, 0.0, 1.0))
        return NoisyMoments(
            N=N,
            m=m,
            s2=s2,
            eta=cells.noise(away) / N**2,
            tau2=cells.noise((away**2 - s2) * d) / N**2,
            fourth=float(away**4 @ cells.counts) / N,
            span=span,
            sure=cells.sure(d),
        )


@dataclass(frozen=True, slots=True)
class NumbersMeasure(ColumnMeasure):
    """A column of numbers. span: the declared bounds; a: the weight of a record's 1 beside its z;
    sums: the Gram sum of both.

    The histogram's outer edges are those of the likely range, and its outer bins are open.
    """

    span: ClipRange
    a: float
    sums: GramSum

    @property
    def weight(self) -> int:
        return 2

    @property
    def clipped(self) -> tuple[float, float] | None:
        return self.span.lower, self.span.upper

    def parts(self, facts: DatasetFacts, groups: Groups, rho: int) -> tuple[Part, ...]:
        counts = super(NumbersMeasure, self).parts(facts, groups, rho)
        return (*counts, replace(self.sums, rho=rho))

    def contributions(self, rows: GroupedRows) -> tuple[Contribution, ...]:
        """The cell, and (2G, rows) e_g ⊗ (a, z)."""
        values = rows.block.columns[self.column.name]
        group = np.where(rows.missing(self.column), -1, rows.group)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            z = np.clip((values - self.span.centre) / self.span.half, -1.0, 1.0)
        sums = weighted_values(self.a, z, group, rows.groups)
        return (*super(NumbersMeasure, self).contributions(rows), sums)

    def codes(self, values: FloatArray) -> FloatArray:
        """The bin between inner edges: the first and the last one are open."""
        inner = np.asarray(self.axis.edges[1:-1])
        codes = np.searchsorted(inner, values, side="right").astype(np.float64)
        return np.where(np.isfinite(values), codes, -1.0)

    def figures(self, cells: Cells, found: ColumnReleases, place: int) -> Mapping[str, Any]:
        noisy = self._moments(cells, found, place)
        return {
            "mean": noisy.mean,
            "standard_deviation": noisy.standard_deviation,
            "quartiles": quartiles(
                cells,
                self.present,
                np.asarray(self.axis.edges),
                (self.column.lower, self.column.upper),
                whole=self.column.kind.is_whole,
            ),
        }

    def _moments(self, cells: Cells, found: ColumnReleases, place: int) -> NoisyMoments:
        """The moments of the Gram sum: of all of its blocks for place 0, else of the group's."""
        G = found.groups.size
        sums = moments(found.parts[1], G, self.a)
        which = slice(None) if place == 0 else slice(place - 1, place)
        noisy_N, S, Q = (float(x[which].sum()) for x in (sums.N, sums.S, sums.Q))
        s2 = sums.s**2 * (G if place == 0 else 1)
        public = found.total if place == 0 and not self.column.may_be_missing else None
        N, of_N, of_S = (
            public or max(noisy_N, 1.0),
            0.0 if public else s2 / self.a**4,
            s2 / (2 * self.a**2),
        )
        m = float(np.clip(S / N, -1.0, 1.0))
        variance = float(np.clip((Q - 2 * m * S + m**2 * N) / max(N - 1, 1.0), 0.0, 1.0))
        tau2 = (s2 + 4 * m**2 * of_S + m**4 * of_N) / N**2
        return NoisyMoments(
            N=N,
            m=m,
            s2=variance,
            eta=(of_S + m**2 * of_N) / N**2,
            tau2=tau2,
            fourth=self._fourth(cells, m, variance + sqrt(tau2)),
            span=self.span,
            sure=bool(public) or bool(clear(noisy_N, sqrt(of_N))),
        )

    def _fourth(self, cells: Cells, m: float, s2: float) -> float:
        """μ₄ of the bins' middles, and of what they lack of `s2`: that lies beyond the likely
        range, where (z − m)⁴ ≤ (z − m)²·max(z − m)².
        """
        edges = (np.asarray(self.axis.edges) - self.span.centre) / self.span.half
        squares = ((edges[1:] + edges[:-1]) / 2 - m) ** 2
        p = cells.counts[: self.axis.size] / cells.number(self.present)
        beyond = max(s2 - float(squares @ p), 0.0) * (1 + abs(m)) ** 2
        return max(float(squares**2 @ p), 0.0) + beyond


def measure_of(facts: DatasetFacts, column: Column, groups: Groups, rho: int) -> ColumnMeasure:
    """What is released of the column; rho: of one part, in RHO_UNITS, which sets the number of
    bins. Raises InvalidQuery."""
    if column.is_dummy or column.kind.has_levels:
        return LevelsMeasure(column, level_axis(column))
    if not is_number(column):
        return WholeMeasure(column, level_axis(column))
    likely, span = clip_range(facts, column), declared_range(facts, column)
    inner = public_edges(facts, column, number_of_bins(facts, groups.size, rho))
    inside = [e for e in inner if likely.lower < e < likely.upper]
    inside = inside or [(likely.lower + likely.upper) / 2]  # one bin alone has another price
    edges = (likely.lower, *inside, likely.upper)
    if column.kind.is_whole:
        edges = float(floor(edges[0])), *(float(ceil(e)) for e in edges[1:])
    axis = Axis(column.name, len(edges) - 1, (), (), edges)
    sums, a = moments_part(facts, groups, weight(span.tilt), rho, unit_of(span, column))
    return NumbersMeasure(column, axis, span, a, sums)


def is_number(column: Column) -> bool:
    """Whether its values are put in bins."""
    few = column.kind.is_whole and column.upper - column.lower < FEW
    return column.kind.is_number and not few


def number_of_bins(facts: DatasetFacts, groups: int, rho: int) -> int:
    """So many that an even share of a group of the mean size is VISIBLE above the noise of a
    count."""
    noise = facts.schema.unit.max_rows * (RHO_UNITS / rho) ** 0.5
    return int(np.clip(facts.n / groups / (VISIBLE * noise), LEAST_BINS, MOST_BINS))


def _whole_range(column: Column) -> ClipRange:
    """The declared bounds; of a single value, a range of width 2 about it."""
    wide = column.upper > column.lower
    ends = (column.lower, column.upper) if wide else (column.lower - 1.0, column.upper + 1.0)
    return ClipRange(*ends, column.lower)
