# SPDX-License-Identifier: Apache-2.0
"""What quantiles, a range of quartiles and a median select from: the public grid of numerics.grids.

All select by mechanisms.quantile_tree, over the records in use: one recursion for all
probabilities, so that the values never decrease.

Where a person has several rows, `per` says what of them counts. "person": all rows in use, each 1/T
of a person who has T of them, so the quantiles are those of the law that draws a person with a row
in use and then one of these rows, all alike. "first", "last": one row of each
(kinds.shared.one_row). Either has the noise of one row a person; without `per` all rows count
alike, with that of m rows.

With weights a record counts as a = w/(the largest declared weight), and the quantiles are those of
the law that draws records by weight: of the population's, of a survey with final weights.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.plan_of_plans import PlannedOn
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray, QuantileTree, Released, SumStep
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.fitting.public.rows import draw_public_rows
from reticent_server.kinds.fields import Name
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.one_row import RowMap, one_row_map, one_row_part
from reticent_server.mechanisms import disjoint_groups, quantile_tree
from reticent_server.numerics.evaluate import in_use, shares
from reticent_server.numerics.grids import candidate_grid, cell_codes, repeats

_MIDDLE = 0.5  # of the largest weight, where nothing is known of weights

Weighing = Literal["person", "first", "last"]
PerPerson = Annotated[
    Weighing | None,
    Field(
        description="Of a data set with several rows a person: with `person` everybody counts "
        "once, in equal parts for such rows; with `first` or `last` only that row of each person "
        "counts. Either has less noise."
    ),
]


QuantileWeights = Annotated[
    Name | None,
    Field(
        description="A numeric column with declared bounds of at least 0, such as survey "
        "weights: each record counts by it. The noise is that of the largest weight, so a narrow "
        "upper bound gives smaller errors. Not with `by` and `intervals`."
    ),
]
_GROUPS = "weights cannot be combined with `by`: ask with `where` for one group."


def weightless(weights: str | None) -> None:
    """Raises InvalidQuery for weights."""
    if weights is not None:
        raise InvalidQuery(_GROUPS)


@dataclass(frozen=True, slots=True)
class CodeMap:
    """(rows,) cell of a record in use on the column's public grid; of a weighted design (2, rows),
    with the share as which it counts.
    """

    design: Design
    column: Column

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block) if self.design.masked else None
        values = block.columns[self.column.name]
        codes = cell_codes(values, candidate_grid(self.column), used)
        weight = self.design.weight
        return (codes if weight is None else np.stack([codes, shares(weight, block)]),)


@dataclass(frozen=True, slots=True)
class PersonCodesMap:
    """(m, persons) cells of each person's rows. m: places of a person."""

    rows: CodeMap
    m: int

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        (codes,) = self.rows(block)
        return (codes.reshape(-1, self.m).T,)


def codes_map(rows: CodeMap, part: QuantileTree, per: Weighing | None) -> RowMap:
    """The map for the part that `quantile_part` gives with this `per`."""
    if per == "person":
        return PersonCodesMap(rows, part.person_rows)
    return one_row_map(rows, rows.design, per, part.person_rows)


def quantile_part(
    facts: DatasetFacts,
    column: Column,
    probabilities: tuple[float, ...],
    rho: int,
    per: Weighing | None = None,
    *,
    weighted: bool = False,
) -> QuantileTree:
    """Quantiles at increasing probabilities. weighted: of records that count by
    weight. Raises InvalidPrivacy where `rho` selects nothing."""
    grid = candidate_grid(column)
    part = QuantileTree(grid, probabilities, rho, facts.schema.unit.max_rows, repeats(grid))
    if per == "person":
        part = replace(part, unit_rows=1, person_rows=part.unit_rows, shared=True)
    elif weighted:
        part = replace(part, weighted=True)
    else:
        part = one_row_part(part, per)
    if not quantile_tree.ladder(part).steps:
        raise InvalidPrivacy("epsilon is too small to select a value; raise it.")
    return part


def part_by_group(part: QuantileTree, rho: int) -> QuantileTree:
    """The part with the largest ρ at which one tree for each group costs at most `rho` of all
    together (RHO_UNITS).

    Raises InvalidPrivacy where that selects nothing.
    """
    while (together := disjoint_groups.of_equal_parts(part)) > rho:
        part = replace(part, rho=min(part.rho * rho // together, part.rho - 1))
        if part.rho <= 0 or not quantile_tree.ladder(part).steps:
            raise InvalidPrivacy("epsilon is too small to select a value; raise it.")
    return part


def reported(released: Released) -> list[float | None]:
    """The selected values; None for all of them where the records are said to be none."""
    return [None if isnan(value) else value for value in released.values.tolist()]


def total_weight(facts: DatasetFacts, design: Design) -> float | None:
    """What records count by weight together, as public facts say; None where a design has no
    weight. Without a profile half of the largest weight for each record.
    """
    if design.weight is None:
        return None
    rows = draw_public_rows(design, facts, masked=False)
    return facts.n * (_MIDDLE if rows is None else rows.share)


class Selecting(Planned):
    """A plan of one selection, about all records in use or about those of a group."""

    __slots__ = ()

    part: QuantileTree
    n: int

    @property
    @abstractmethod
    def step(self) -> SumStep:
        """The step that releases the selected cells."""

    @abstractmethod
    def members(self, released: Released) -> dict[str, Any]:
        """The members of its result."""


@dataclass(frozen=True, slots=True)
class GroupSelections(PlannedOn):
    """The same selection for each group, all in one pass and charge. one: of a group, at what its
    tree may cost."""

    deadline_shares: ClassVar = (0.08, 0.17)

    one: Selecting
    groups: Groups

    @property
    def base(self) -> Planned:
        """The selections of one group."""
        return self.one

    @property
    def outline(self) -> Outline:
        one, rho = self.one.outlined, disjoint_groups.of_equal_parts(self.one.part)
        return replace(
            one,
            rho=rho,
            reference=f"{one.reference}; McSherry (2009)",
            parts=(self.one.part,) * self.groups.size,
            own_cost=None if one.own_cost is None else replace(one.own_cost, rho=rho),
        )

    @property
    def name(self) -> str:
        return f"{type(self).__name__} {self.one.name}"

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The scale of a selection's noise, as a share of the records of a group as large as the
        others."""
        return {"rank_error": quantile_tree.scale(self.one.part) * self.groups.size / self.one.n}

    def run(self) -> Recipe:
        """One step; within a group larger probabilities have no smaller values."""
        steps, name = [self.one.step] * self.groups.size, self.groups.column or ""
        released = yield disjoint_groups.grouped(steps[0].label, name, self.groups.codes, steps)
        return [self.one.members(each) for each in released]
