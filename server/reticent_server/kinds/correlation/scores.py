# SPDX-License-Identifier: Apache-2.0
"""The pairs of scores whose moments are released: each a function of one record, of norm at most 1.

Pearson: (x − c)/(WITHIN·s) of each column, c its expected mean and s its public spread, clipped to
±1 and divided by √2. Each column is clipped by itself, so that independent columns have independent
scores: drawing pairs in by their norm would be less noise, and correlates independent columns that
are skewed (a level of .1 in place of .05 at n = 20,000). Spearman: (2F(x) − 1)/√2, F the column's
public distribution function by its released quantiles, a value that many share at the middle of its
share: grades, which are ranks over n where F is right.
"""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.kinds.shared.ranges import clip_range, spread

_LEAST_NORM = 1e-6  # of grades that are all the same: a clip is above 0
WITHIN = (
    2.5  # standard deviations: 1.2 % of a normal column lie beyond, and noise grows as its square
)


@dataclass(frozen=True, slots=True)
class Standardised:
    """Pearson's scores."""

    x: str
    y: str
    centres: tuple[float, float]
    spreads: tuple[float, float]

    method: ClassVar[str] = "pearson"
    expected_variance: ClassVar[float] = 1 / (
        2 * WITHIN**2
    )  # of a score, where the spread is right
    estimand: ClassVar[str] = (
        "correlation of columns that are clipped to 2.5 robust standard deviations about their "
        "middle"
    )

    @property
    def norm(self) -> float:
        """The largest of a record."""
        return 1.0

    def of(self, block: Block) -> FloatArray:
        """(2, rows)."""
        columns = zip((self.x, self.y), self.centres, self.spreads, strict=True)
        z = np.stack([(block.columns[name] - c) / (WITHIN * s) for name, c, s in columns])
        return np.asarray(np.clip(z, -1.0, 1.0) / sqrt(2))

    def spread(self, r: FloatArray) -> FloatArray:
        """n times the sampling variance of a correlation r of a normal law."""
        return (1 - r**2) ** 2


@dataclass(frozen=True, slots=True)
class Grade:
    """A column's distribution function: through (values, shares), flat beyond them."""

    column: str
    values: tuple[float, ...]
    shares: tuple[float, ...]

    def of(self, block: Block) -> FloatArray:
        return np.interp(block.columns[self.column], self.values, self.shares)


@dataclass(frozen=True, slots=True)
class Grades:
    """Spearman's scores."""

    first: Grade
    second: Grade

    method: ClassVar[str] = "spearman"
    expected_variance: ClassVar[float] = 1 / 6  # of (2U − 1)/√2, U uniform
    estimand: ClassVar[str] = (
        "correlation of grades: of ranks by the released quantiles of the columns"
    )

    @property
    def norm(self) -> float:
        """The largest of a record: less than 1 where values are few."""
        ends = (np.abs(2 * np.asarray(g.shares) - 1).max() for g in (self.first, self.second))
        return max(float(np.hypot(*ends)) / sqrt(2), _LEAST_NORM)

    def of(self, block: Block) -> FloatArray:
        """(2, rows)."""
        return np.stack([(2 * g.of(block) - 1) / np.sqrt(2) for g in (self.first, self.second)])

    def spread(self, r: FloatArray) -> FloatArray:
        """n times the sampling variance of a rank correlation r (Bonett & Wright 2000)."""
        return (1 - r**2) ** 2 * (1 + r**2 / 2)


def standardised(facts: DatasetFacts, x: Column, y: Column) -> Standardised:
    """By the columns' public ranges."""
    spans = (clip_range(facts, x), clip_range(facts, y))
    spreads = (spread(facts, x, spans[0]), spread(facts, y, spans[1]))
    return Standardised(x.name, y.name, (spans[0].expected, spans[1].expected), spreads)


def grades_of(facts: DatasetFacts, column: Column) -> Grade:
    """From released counts or quantiles; linear over the declared bounds where nothing is
    released."""
    known = facts.profile.columns.get(column.name) if facts.profile else None
    if known is not None and known.counts is not None and sum(known.counts) > 0:
        counts = np.maximum(np.asarray(known.counts), 0.0)
        middles = (np.cumsum(counts) - counts / 2) / counts.sum()
        values = known.first + np.arange(len(counts))
        return Grade(column.name, tuple(values.tolist()), tuple(middles.tolist()))
    knots: dict[float, list[float]] = {}
    if column.lower < column.upper:
        knots = {column.lower: [0.0], column.upper: [1.0]}
    if known is not None and known.quantiles:
        for p, q in zip(known.probabilities, known.quantiles, strict=False):
            knots.setdefault(float(q), []).append(p)
    places = sorted(knots) or [column.lower]
    shares = tuple(float(np.mean(knots.get(v, [0.5]))) for v in places)
    return Grade(column.name, tuple(places), shares)
