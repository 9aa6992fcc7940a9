# SPDX-License-Identifier: Apache-2.0
"""A planned contingency table: noisy counts by the values of columns (kinds.shared.tables has the
proof).

A two-way table also carries a test of independence with the noise in its null law
(numerics.independence), of the cells before their sum is put in, whose noise is independent:
post-processing, free.
"""

from dataclasses import dataclass, replace
from itertools import chain
from math import sqrt
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import MinLen

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.normal import CONFIDENCE, half_width
from reticent_server.fitting.results import Share, Size
from reticent_server.fitting.trust import clear
from reticent_server.kinds.shared.one_row import Which, counted
from reticent_server.kinds.shared.sparse_groups import in_statistic, sparse_warnings
from reticent_server.kinds.shared.tables import TablePlan, cells_part, level_axis
from reticent_server.numerics.independence import LARGEST, IndependenceTest, independence_test

_SIMULATED_CELLS_A_MS = 2  # cells of which 999 simulated tables take 1 ms; measured: 3 to 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CrosstabResult:
    """Noisy counts, nested by column in the order of `columns`; levels: of each column.

    independence: of a table of two columns whose rows are independent, otherwise null: not where a
    person has several. It is of the levels whose numbers are above their noise; warnings name the
    others.
    """

    columns: Annotated[list[str], MinLen(2)]
    levels: Annotated[list[list[str]], MinLen(2)]
    values: list[Any]
    standard_error: Size
    confidence_level: Share
    interval_half_width: Size
    independence: IndependenceTest | None
    n: int
    warnings: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CrosstabPlan(TablePlan):
    """A planned contingency table."""

    deadline_shares: ClassVar = (0.02, 0.02)

    @property
    def two_way(self) -> bool:
        """Whether there is a test of independence."""
        sizes = [axis.size for axis in self.axes]
        return len(sizes) == 2 and min(sizes) > 1 and self.part.unit_rows == 1

    @property
    def outline(self) -> Outline:
        outline = super(CrosstabPlan, self).outline
        simulated = self.two_way and self.part.bins <= LARGEST
        testing = self.part.bins // _SIMULATED_CELLS_A_MS + 1 if simulated else 0
        return replace(outline, column_ms=outline.column_ms + testing)

    def expected_ms(self, n: int) -> float:
        return super(CrosstabPlan, self).expected_ms(n) + self.column_ms

    def run(self) -> Recipe:
        """One step."""
        (released,) = yield self.step
        sizes, counts = [axis.size for axis in self.axes], self.counts(released)
        independence, warnings = self._independence(released.values.reshape(sizes), released.sd)
        return CrosstabResult(
            columns=[axis.column for axis in self.axes],
            levels=[list(axis.levels) for axis in self.axes],
            values=counts.values.reshape(sizes).tolist(),
            standard_error=counts.sd,
            confidence_level=CONFIDENCE,
            interval_half_width=half_width(counts.sd),
            independence=independence,
            n=self.n,
            warnings=warnings,
        )

    def _independence(
        self, table: FloatArray, sd: float
    ) -> tuple[IndependenceTest | None, tuple[str, ...] | None]:
        """The test of the levels of both margins whose number is above its noise, and what it
        leaves out. table: (r, c)."""
        if not self.two_way:
            return None, None
        known = [
            np.asarray(clear(table.sum(axis=1 - k), sd * sqrt(table.shape[1 - k]))) for k in (0, 1)
        ]
        said = chain.from_iterable(
            sparse_warnings([f"{axis.column} {level}" for level in axis.levels], each) or ()
            for axis, each in zip(self.axes, known, strict=True)
        )
        compared = table[np.ix_(*(in_statistic(each) for each in known))]
        return independence_test(compared, sd), tuple(said) or None


def plan_crosstab(
    facts: DatasetFacts,
    design: Design,
    columns: tuple[Column, ...],
    rho: int,
    per: Which | None = None,
) -> CrosstabPlan:
    """Counts by the values of two or more different columns, at `rho` (RHO_UNITS)."""
    if len(columns) < 2 or len({c.name for c in columns}) < len(columns):
        raise InvalidQuery("A crosstab needs two or more different columns.")
    axes = tuple(map(level_axis, columns))
    part = cells_part(facts, axes, rho, per)
    return CrosstabPlan(design, axes, part, counted(facts, per), per=per)
