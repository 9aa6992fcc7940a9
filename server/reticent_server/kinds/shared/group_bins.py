# SPDX-License-Identifier: Apache-2.0
"""Counts by group and public bin of a column, in one release: what tests of ranks and of
distributions are made of.

A record in use of a group adds 1 to one cell (group, bin): CountSum, Δ = √2 whatever the number of
cells, a record that moves to another group included (mechanisms.noisy_sum). Bins are intervals that
begin at public edges, the first and the last one open: every value is in one. Edges are of the
released quantiles at k/B (a value that several of these share has a bin of its own), of the
declared bounds where nothing is released, or between whole numbers where there are few. B is a
public function of n, ρ and the number of groups.

Source: Dwork & Smith (2009), Theorem 6; parallel composition, McSherry (2009).
"""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, CountSum, FloatArray, Released
from reticent_server.fitting.trust import clear
from reticent_server.kinds.shared.columns import profile_quantiles
from reticent_server.kinds.shared.groups import Groups
from reticent_server.numerics.evaluate import in_use

# 5 keep 1 − 1/25 of the variance of ranks; more than 24 quantiles are not released
LEAST_BINS, MOST_BINS = 5, 24
FEW_VALUES = 10  # whole numbers that have a bin each


@dataclass(frozen=True, slots=True)
class GroupBinsMap:
    """(rows,) group·B + bin of a record in use; −1 where it is in none."""

    design: Design
    groups: Groups
    column: str
    edges: tuple[float, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        values = self.values(block)
        used = in_use(self.design, block) & np.isfinite(values)
        group = self.groups.places(block, used)
        cells = group * (len(self.edges) + 1) + self.bins(values)
        return (np.where(group >= 0, cells, -1.0),)

    def values(self, block: Block) -> FloatArray:
        """(rows,) what is put into bins: the column, which a subclass may replace."""
        return block.columns[self.column]

    @property
    def nanoseconds(self) -> int:
        """The planned time of `values` for a record."""
        return 0

    def bins(self, values: FloatArray) -> FloatArray:
        """(rows,) the bin of each value; a bin holds its lower edge."""
        return np.searchsorted(np.asarray(self.edges), values, side="right").astype(np.float64)


@dataclass(frozen=True, slots=True)
class PairBinsMap:
    """(rows,) cell of a record in use among the pairs of two columns' bins; −1 where a value is no
    number."""

    design: Design
    columns: tuple[str, str]
    edges: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of bins."""
        return len(self.edges[0]) + 1, len(self.edges[1]) + 1

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        x, y = (block.columns[name] for name in self.columns)
        used = in_use(self.design, block) & np.isfinite(x) & np.isfinite(y)
        first, second = (
            np.searchsorted(np.asarray(e), v, side="right")
            for e, v in zip(self.edges, (x, y), strict=True)
        )
        return (np.where(used, (first * self.shape[1] + second).astype(np.float64), -1.0),)


@dataclass(frozen=True, slots=True, eq=False)
class GroupBins:
    """Released counts T (G, B), with noise of sd σ in each; they may be negative."""

    T: FloatArray
    sigma: float

    @property
    def numbers(self) -> FloatArray:
        """(G,) numbers of records, at least 1."""
        return np.asarray(np.maximum(self.T.sum(axis=1), 1.0))

    @property
    def sure(self) -> bool:
        """Whether every group's number is above three standard deviations of its noise."""
        return bool(self.known.all())

    @property
    def known(self) -> NDArray[np.bool_]:
        """(G,) which groups' numbers are above their noise (fitting.trust.clear): the others may be
        empty."""
        noise = self.sigma * np.sqrt(self.T.shape[1])
        return np.asarray(clear(self.T.sum(axis=1), noise))

    @property
    def pooled(self) -> FloatArray:
        """(B,) shares of all groups together: from 0, of sum 1."""
        return shares(self.T.sum(axis=0))

    @property
    def own(self) -> FloatArray:
        """(G, B) shares of each group: from 0, of sum 1."""
        return np.stack([shares(row) for row in self.T])


def shares(counts: FloatArray) -> FloatArray:
    """The shares of noisy counts, the negative ones taken as 0; equal shares where none is
    positive."""
    kept = np.maximum(counts, 0.0)
    total = float(kept.sum())
    return kept / total if total > 0 else np.full(len(kept), 1 / len(kept))


def group_bins(released: Released, groups: int) -> GroupBins:
    """The bins of the released counts of a GroupBinsMap."""
    return GroupBins(released.values.reshape(groups, -1), released.sd)


def bins_part(facts: DatasetFacts, groups: Groups, edges: tuple[float, ...], rho: int) -> CountSum:
    """The counts by group and bin at `rho` (RHO_UNITS)."""
    return CountSum(groups.size * (len(edges) + 1), rho, facts.schema.unit.max_rows)


def number_of_bins(
    facts: DatasetFacts, groups: int, rho: int, *, finer: float = 1.0, least: int = LEAST_BINS
) -> int:
    """B for the least variance of a mean rank: 1/(1 − B⁻²) of sampling and Bσ²/N of noise,
    N = n/groups. finer: what it is multiplied by where the bins' own bias counts."""
    m = facts.schema.unit.max_rows
    noise = m * m * RHO_UNITS / rho * groups / facts.n
    return int(np.clip(np.rint(finer * (2 / noise) ** (1 / 3)), least, MOST_BINS))


def public_edges(facts: DatasetFacts, column: Column, bins: int) -> tuple[float, ...]:
    """Increasing edges of about `bins` bins, by the rule above."""
    values = column.upper - column.lower + 1
    if column.kind.is_whole and values <= FEW_VALUES:
        return tuple(float(column.lower + k) for k in range(1, int(values)))
    probabilities = np.arange(1, bins) / bins
    released = profile_quantiles(facts, column.name, (0.25, 0.5, 0.75))
    if released is None or facts.profile is None:
        inside = column.lower + probabilities * (column.upper - column.lower)
    else:
        known = facts.profile.columns[column.name]
        q = known.quantiles or ()
        inside = np.interp(probabilities, known.probabilities[: len(q)], q)
    return _edges(inside.tolist(), column)


def _edges(inside: list[float], column: Column) -> tuple[float, ...]:
    """A value that comes twice begins a bin, and the next number begins another; of whole numbers
    edges are the first one of each bin."""
    spikes = {float(np.nextafter(a, np.inf)) for a, b in pairwise(inside) if a == b}
    edges = spikes.union(inside)
    if column.kind.is_whole:
        edges = {float(ceil(e)) for e in edges}
    return tuple(sorted({e for e in edges if column.lower < e <= column.upper}))
