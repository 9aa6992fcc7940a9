# SPDX-License-Identifier: Apache-2.0
"""One row of each person: counts, sums and tables of persons in place of rows.

`where` and missing cells come first: of the rows that are left, a person's first or last one
counts, and nobody has more. Rows have the order in which a table of persons keeps them: by their
declared columns, one after the other (vault.person_rows). A person without such a row contributes
as a row that is out of use does.

Proof. The chosen place is a function of one person's m places, and so is the contribution of the
row that stands there. A person that is replaced by another, of any number of rows, changes one
contribution, whatever m is. So the part has the sensitivity of a table with one row a person
(mechanisms.noisy_sum with `unit_rows` 1): 1 for one count, √2 for counts by cell, 2 h for a sum of
values in an interval of half width h, one rank for quantiles (mechanisms.quantile_tree); replacing
one row attains each. All rows of a person would have m times as much.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.steps import Block, CountSum, FloatArray, QuantileTree, VectorSum
from reticent_server.errors import InvalidQuery
from reticent_server.numerics.evaluate import in_use

RowMap = Callable[[Block], tuple[FloatArray, ...]]
Which = Literal["any", "first", "last"]
Part = TypeVar("Part", CountSum, VectorSum, QuantileTree)

PerAny = Annotated[
    Literal["any"] | None,
    Field(
        description=(
            "Of a data set with several rows a person: `any` counts persons with such a row, "
            "once each, with less noise."
        )
    ),
]
PerRow = Annotated[
    Literal["first", "last"] | None,
    Field(
        description=(
            "Of a data set with several rows a person: only each person's first or last such row "
            "counts, with less noise."
        )
    ),
]

_ONE_ROW = "`per` is for data sets with several rows a person; here there is one, so leave it out."
_BY = "`per` cannot be combined with `by`: ask with `where` for one group, or for a crosstab."


@dataclass(frozen=True, slots=True)
class OneRowMap:
    """(…, persons) contributions of one row each, of a map that gives (…, rows). m: places of a
    person."""

    rows: RowMap
    design: Design
    which: Which
    m: int

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block).reshape(-1, self.m)
        if self.which == "last":  # without a row in use, a place that is not
            place = self.m - 1 - np.argmax(used[:, ::-1], axis=1)
        else:
            place = np.argmax(used, axis=1)
        chosen = np.arange(len(place)) * self.m + place
        return tuple(contribution[..., chosen] for contribution in self.rows(block))


def one_row_map(rows: RowMap, design: Design, per: Which | None, m: int) -> RowMap:
    """The map itself, or of one row a person. m: the part's `person_rows`."""
    return rows if per is None else OneRowMap(rows, design, per, m)


def one_row_part(part: Part, per: Which | None) -> Part:
    """The part itself, or that of one contribution a person."""
    return part if per is None else replace(part, unit_rows=1, person_rows=part.unit_rows)


def counted(facts: DatasetFacts, per: str | None, by: str | None = None) -> int:
    """How many contributions there are: places, or persons. Raises InvalidQuery."""
    if per is None:
        return facts.n
    if facts.persons is None:
        raise InvalidQuery(_ONE_ROW)
    if by is not None:
        raise InvalidQuery(_BY)
    return facts.persons
