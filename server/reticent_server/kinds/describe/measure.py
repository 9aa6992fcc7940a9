# SPDX-License-Identifier: Apache-2.0
"""What is released of a described column, and what is made of it.

A record in use of group g adds 1 to one cell (g, bin) of each column: CountSum, Δ = √2 for all
groups together. A cell beyond the bins is for what is missing, free. A column of many numbers has
e_g ⊗ (a, z) besides: GramSum, Δ = √2·R² for all groups together (kinds.shared.groups). Every part
has the same ρ, and parts add up.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, Contribution, CountSum, FloatArray, Part, Released
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.describe.cells import Cells, share, shown_edges
from reticent_server.kinds.describe.figures import DescribedColumn, DescribedGroup
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.tables import MAX_CELLS, Axis

ALL = "all"  # what all records together are called


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """A block's records, and the place (rows,) of their group among `groups`, −1 where a record is
    out of use."""

    block: Block
    group: NDArray[np.int64]
    groups: int

    def missing(self, column: Column) -> NDArray[np.bool_]:
        """(rows,) where the column has no value."""
        found = self.block.missing.get(column.name)
        return np.zeros(self.block.rows, dtype=np.bool_) if found is None else found


@dataclass(frozen=True, slots=True)
class ColumnReleases:
    """What was released of a column; total: the public number of records in use, where there is
    one."""

    parts: tuple[Released, ...]
    groups: Groups
    total: float | None

    @property
    def names(self) -> tuple[str, ...]:
        """All records, then the groups."""
        return (ALL, *(self.groups.levels if self.groups.column else ()))


@dataclass(frozen=True, slots=True)
class ColumnMeasure(ABC):
    """A column that is described. axis: its bins, values or levels."""

    column: Column
    axis: Axis

    @property
    def cells(self) -> int:
        """A group's, with the one for what is missing."""
        return self.axis.size + self.column.may_be_missing

    @property
    def present(self) -> FloatArray:
        """(cells,) 1.0 where a record has a value."""
        return np.asarray(np.arange(self.cells) < self.axis.size, dtype=np.float64)

    @property
    def weight(self) -> int:
        """How many parts it has."""
        return 1

    def parts(self, facts: DatasetFacts, groups: Groups, rho: int) -> tuple[Part, ...]:
        """At `rho` (RHO_UNITS) each. Raises InvalidQuery where there are too many cells."""
        cells = groups.size * self.cells
        if cells > MAX_CELLS:
            raise InvalidQuery(
                f"A column has more than {MAX_CELLS} cells by group: name columns of fewer levels."
            )
        return (CountSum(cells, rho, facts.schema.unit.max_rows),)

    def contributions(self, rows: GroupedRows) -> tuple[Contribution, ...]:
        """(rows,) group · cells + cell; −1 where the record is in none."""
        codes = self.codes(rows.block.columns[self.column.name])
        codes = np.where(rows.missing(self.column), float(self.axis.size), codes)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            inside = (rows.group >= 0) & (codes >= 0) & (codes < self.cells)
            return (np.where(inside, rows.group * self.cells + codes, -1.0),)

    def codes(self, values: FloatArray) -> FloatArray:
        """(rows,) the cell of a value."""
        return self.axis.codes(values)

    def cells_of(self, found: ColumnReleases) -> list[Cells]:
        """Those of all records, and of each group."""
        counts, G = found.parts[0], found.groups.size
        rows = counts.values.reshape(G, self.cells)
        every = Cells(rows.sum(axis=0), counts.sd * G**0.5, found.total)
        return [every, *(Cells(row, counts.sd) for row in rows if found.groups.column)]

    def described(self, found: ColumnReleases) -> DescribedColumn:
        """The column's place in the reply."""
        groups = [
            self._group(name, cells, self.figures(cells, found, place))
            for place, (name, cells) in enumerate(
                zip(found.names, self.cells_of(found), strict=True)
            )
        ]
        return DescribedColumn(
            column=self.column.name,
            groups=groups,
            edges=shown_edges(np.asarray(self.axis.edges)) if self.axis.edges else None,
            levels=list(self.axis.levels) or None,
            clipped=self.clipped,
        )

    @property
    def clipped(self) -> tuple[float, float] | None:
        """The range that values are clipped to in sums, where there are sums."""
        return None

    @abstractmethod
    def figures(self, cells: Cells, found: ColumnReleases, place: int) -> Mapping[str, Any]:
        """The members of a DescribedGroup that such columns have. place: 0 for all records, then
        each group's."""

    def _group(self, name: str, cells: Cells, figures: Mapping[str, Any]) -> DescribedGroup:
        d = self.present
        missing = share(cells, 1 - d, np.ones(self.cells)) if self.column.may_be_missing else None
        return DescribedGroup(
            level=name,
            number=float(d @ cells.counts),
            counts=cells.counts[: self.axis.size].tolist(),
            count_standard_error=cells.sd,
            missing=missing,
            **figures,
        )
