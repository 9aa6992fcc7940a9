# SPDX-License-Identifier: Apache-2.0
"""A profile that a query makes of its own columns, at its own expense, where the curator's does not
tell their spread.

One pass over the records in use: quantiles of the numeric columns that the query reads, counts of
the others (fitting.column_measures). A column that the curator's profile resolves is not profiled
again; one of which it has a median alone, or counts below their noise, is as one without a profile.
The released values become a profile like any other, of the records in use, and everything after it
is planned in the same way. A curator's profile is cheaper: it is paid once.

Which columns these are is a function of released values and the schema. Privacy: the parts' own
(mechanisms.quantile_tree, mechanisms.noisy_sum, fitting.column_measures), composing by zCDP.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import TypeVar

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import (
    Block,
    CountSum,
    FloatArray,
    Part,
    QuantileTree,
    Released,
    SumStep,
)
from reticent_server.fitting import trust
from reticent_server.fitting.column_measures import (
    Measure,
    allocated,
    column_profile,
    is_counted,
    is_resolved,
    measures,
)
from reticent_server.fitting.trust import SOUND, TrustVerdict
from reticent_server.numerics.evaluate import in_use

GroundT = TypeVar("GroundT")

NO_PROFILE = (
    "No profile has the spread of all of this model's columns: a share of the budget went to "
    "quartiles. A profile by the curator that resolves them would be paid once for all queries."
)
# of the quantiles of a numeric column: bulk, quartiles and tails; more of them would share the same
# ρ
PROBABILITIES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
LEAST_SHARE, LARGEST_SHARE = 0.05, 0.20  # of the query's ρ
_MOST_SHARE = 0.35
"""The same where it is needed to resolve all columns: without that a fit is worth nothing."""
_LEVELS = 4  # of the quantile tree for PROBABILITIES
_RANK_NOISE = 0.01  # of the records: noise of a selection from which on the share grows


@dataclass(frozen=True, slots=True)
class OwnProfileMap:
    """A record's cells, level codes and missing marks, or a person's, of the records in use."""

    design: Design
    measures: tuple[Measure, ...]
    unit_rows: int

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design.stored, block) if self.design.masked else None
        return tuple(m.contributions(block, used, self.unit_rows) for m in self.measures)


@dataclass(frozen=True)
class OwnProfile:
    """A planned profile of the columns that a design reads and `facts` do not resolve; rho: of each
    part (RHO_UNITS).

    masked: whether the marginals of other columns, which are of all records, say how many are in
    use.
    """

    facts: DatasetFacts
    map_fn: OwnProfileMap
    rhos: tuple[int, ...]
    masked: bool

    @property
    def rho(self) -> int:
        """What all of its parts cost, in RHO_UNITS."""
        return sum(self.rhos)

    def planned_at(self, rho: int) -> "OwnProfile":
        """The same profile out of another amount for the whole query."""
        columns = tuple(dict.fromkeys(m.column for m in self.map_fn.measures))
        return plan_own_profile(self.facts, self.map_fn.design, rho, columns)

    @cached_property
    def step(self) -> SumStep:
        """The pass over the table that releases it, made once: a plan asks for its parts again and
        again.
        """
        m = self.facts.schema.unit.max_rows
        parts = tuple(
            measure.part(rho, m, self.facts.least_records, PROBABILITIES)
            for measure, rho in zip(self.map_fn.measures, self.rhos, strict=True)
        )
        return SumStep("own profile", parts, self.map_fn)

    @property
    def unresolved(self) -> tuple[str, ...]:
        """The columns of which it will tell a median alone."""
        parts = zip(self.map_fn.measures, self.step.parts, strict=True)
        return tuple(
            m.column.name
            for m, p in parts
            if isinstance(p, QuantileTree) and len(p.probabilities) == 1
        )

    @property
    def verdict(self) -> TrustVerdict:
        """The verdict on a fit that uses this profile."""
        return trust.spread(self.unresolved)

    @property
    def draws(self) -> int:
        """Sub-cells that its quantile trees select from, for the planned time."""
        return sum(t.sub_cells * _LEVELS for t in self.selections)

    @property
    def selections(self) -> tuple[QuantileTree, ...]:
        """Its parts of numeric columns."""
        return tuple(p for p in self.step.parts if isinstance(p, QuantileTree))

    @property
    def counts(self) -> tuple[CountSum, ...]:
        """Its parts that are counts of records."""
        return tuple(p for p in self.step.parts if isinstance(p, CountSum))

    def profiled(self, released: Sequence[Released]) -> DatasetFacts:
        """The facts with the released columns, which are of the records in use."""
        by_column: dict[str, list[tuple[Measure, Part, Released]]] = {}
        columns: dict[str, Column] = {}
        for measure, part, value in zip(
            self.map_fn.measures, self.step.parts, released, strict=True
        ):
            columns[measure.column.name] = measure.column
            by_column.setdefault(measure.column.name, []).append((measure, part, value))
        n = self.facts.least_records
        profiles = {
            k: column_profile(columns[k], v, PROBABILITIES, n) for k, v in by_column.items()
        }
        return _with(self.facts, profiles)

    @property
    def guessed(self) -> DatasetFacts:
        """The facts with a stand-in for the profile that will be released: levels as equally
        frequent, numbers as uniform between their bounds. Only sizes are planned with it.
        """
        return _with(self.facts, {m.column.name: _guess(m.column) for m in self.map_fn.measures})


def planned_ground(
    facts: DatasetFacts,
    design: Design,
    rho: int,
    ground_of: Callable[[DatasetFacts, bool], GroundT | None],
) -> tuple[GroundT, OwnProfile | None]:
    """What a query stands on, and the profile that it makes first where its columns are not all
    resolved.

    ground_of: from facts and whether a mask is applied to their public rows.
    """
    columns = lacking(facts, design)
    own = plan_own_profile(facts, design, rho, columns) if columns else None
    ground = ground_of(own.guessed, own.masked) if own else ground_of(facts, True)
    assert ground is not None  # noqa: S101 - guessed or resolved facts cover every column
    return ground, own


def counts_of(own: OwnProfile | None) -> tuple[CountSum, ...]:
    """As an outline names them beside those of a fit (domain.plan)."""
    return own.counts if own else ()


def selections_of(own: OwnProfile | None) -> tuple[QuantileTree, ...]:
    """As an outline names them."""
    return own.selections if own else ()


def spread_verdict(own: OwnProfile | None) -> TrustVerdict:
    """The verdict on a fit with an own profile, or on the curator's."""
    return own.verdict if own else SOUND


def profile_notes(own: OwnProfile | None) -> list[str]:
    """What a forecast and a reply say of it."""
    return [] if own is None else [NO_PROFILE, *own.verdict.sentences]


def lacking(facts: DatasetFacts, design: Design) -> tuple[Column, ...]:
    """The columns of a design of which no spread is released, in the order of the schema."""
    known = facts.profile.columns if facts.profile else {}
    read = (c for c in facts.schema.columns if c.name in design.columns)
    return tuple(c for c in read if not is_resolved(c, known.get(c.name)))


def plan_own_profile(
    facts: DatasetFacts, design: Design, rho: int, columns: Sequence[Column]
) -> OwnProfile:
    """An own profile of some of a design's columns, out of a query's `rho`: 5 % of it, up to 20 %
    where selections would be noisier than n/100, up to 35 % where that resolves all columns.
    """
    planned = tuple(
        m
        for column in columns
        for m in measures(column)
        if m.what != "missing" or column.name in design.filled_columns
    )
    m, n = facts.schema.unit.max_rows, facts.least_records
    wanted = len(planned) * _LEVELS / (_RANK_NOISE * n) ** 2 / 2
    share = min(LARGEST_SHARE, max(LEAST_SHARE, wanted * RHO_UNITS / rho))
    needed = (sum(x.needs(m, n) for x in planned) + len(planned)) / rho
    share = max(share, needed) if needed <= _MOST_SHARE else share
    rhos = allocated(planned, ceil(share * rho), m, n)
    masked = len(columns) < len(design.columns)
    return OwnProfile(facts, OwnProfileMap(design, planned, m), rhos, masked)


def _with(facts: DatasetFacts, columns: Mapping[str, ColumnProfile]) -> DatasetFacts:
    """The facts with further columns of a profile, in the place of what was known of them."""
    known = facts.profile or Profile({})
    return replace(facts, profile=replace(known, columns={**known.columns, **columns}))


def _guess(column: Column) -> ColumnProfile:
    if is_counted(column):
        values = int(column.upper - column.lower) + 1
        return ColumnProfile(counts=(1.0,) * values, first=column.lower)
    quantiles = np.interp(PROBABILITIES, (0.0, 1.0), (column.lower, column.upper))
    return ColumnProfile(quantiles=tuple(quantiles.tolist()), probabilities=PROBABILITIES)
