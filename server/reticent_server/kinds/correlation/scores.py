# SPDX-License-Identifier: Apache-2.0
"""Spearman's pair of scores of a record: grades, (2F(x) − 1)/√2 with F the column's public
distribution function by its released quantiles, a value that many share at the middle of its share.
They are ranks over n where F is right, and their norm is at most 1.
"""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray

_LEAST_NORM = 1e-6  # of grades that are all the same: a clip is above 0


@dataclass(frozen=True, slots=True)
class Grade:
    """A column's distribution function: through (values, shares), flat beyond them."""

    column: str
    values: tuple[float, ...]
    shares: tuple[float, ...]

    def of(self, block: Block) -> FloatArray:
        """(rows,) the share of records below each value, by public interpolation."""
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
