# SPDX-License-Identifier: Apache-2.0
"""A profile that a query makes of its own columns, at its own expense, where no curator's profile is.

One pass over the records in use: quantiles of the numeric columns that the query reads, counts of the others
(fitting.column_measures). The released values become a profile like any other, of the records in use, and
everything after it is planned in the same way. A curator's profile is cheaper: it is paid once.

Privacy: the parts' own (mechanisms.quantile_tree, mechanisms.noisy_sum), composing by zCDP.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray, Part, QuantileTree, Released, SumStep
from reticent_server.fitting.column_measures import Measure, column_profile, is_counted, measures
from reticent_server.numerics.evaluate import in_use

NO_PROFILE = (
    "No profile covers this model's columns: a share of the budget went to their quartiles. "
    "A profile by the curator would be paid once for all queries."
)
# of the quantiles of a numeric column: bulk, quartiles and tails; more of them would share the same ρ
PROBABILITIES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
LEAST_SHARE, LARGEST_SHARE = 0.05, 0.20  # of the query's ρ
_LEVELS = 4  # of the quantile tree for PROBABILITIES
_RANK_NOISE = 0.01  # of the records: noise of a selection from which on the share grows


@dataclass(frozen=True, slots=True)
class OwnProfileMap:
    """A record's cells, level codes and missing marks, of the records in use."""

    design: Design
    measures: tuple[Measure, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design.stored, block) if self.design.masked else None
        return tuple(measure.codes(block, used) for measure in self.measures)


@dataclass(frozen=True, slots=True)
class OwnProfile:
    """A planned profile of the columns that a design reads; rho: of each part (RHO_UNITS)."""

    facts: DatasetFacts
    map_fn: OwnProfileMap
    rhos: tuple[int, ...]

    @property
    def rho(self) -> int:
        return sum(self.rhos)

    @property
    def step(self) -> SumStep:
        m = self.facts.schema.unit.max_rows
        parts = tuple(
            measure.part(rho, m, self.facts.least_records, PROBABILITIES)
            for measure, rho in zip(self.map_fn.measures, self.rhos, strict=True)
        )
        return SumStep("own profile", parts, self.map_fn)

    @property
    def draws(self) -> int:
        """Sub-cells that its quantile trees select from, for the planned time."""
        trees = [p for p in self.step.parts if isinstance(p, QuantileTree)]
        return sum(t.sub_cells * _LEVELS for t in trees)

    def profiled(self, released: Sequence[Released]) -> DatasetFacts:
        """The facts with the released profile, which is of the records in use."""
        by_column: dict[str, list[tuple[Measure, Part, Released]]] = {}
        columns: dict[str, Column] = {}
        for measure, part, value in zip(
            self.map_fn.measures, self.step.parts, released, strict=True
        ):
            columns[measure.column.name] = measure.column
            by_column.setdefault(measure.column.name, []).append((measure, part, value))
        profiles = {k: column_profile(columns[k], v, PROBABILITIES) for k, v in by_column.items()}
        return replace(self.facts, profile=Profile(profiles))


def plan_own_profile(facts: DatasetFacts, design: Design, rho: int) -> OwnProfile:
    """An own profile out of a query's `rho`: 5 % of it, up to 20 % where selections would be noisier than n/100."""
    columns = [c for c in facts.schema.columns if c.name in design.columns]
    planned = tuple(
        m
        for column in columns
        for m in measures(column)
        if m.what != "missing" or column.name in design.filled_columns
    )
    m = facts.schema.unit.max_rows
    wanted = len(planned) * _LEVELS * (m / (_RANK_NOISE * facts.least_records)) ** 2 / 2
    share = min(LARGEST_SHARE, max(LEAST_SHARE, wanted * RHO_UNITS / rho))
    weights = sum(x.weight for x in planned)
    rhos = tuple(max(1, int(share * rho * x.weight / weights)) for x in planned)
    return OwnProfile(facts, OwnProfileMap(design, planned), rhos)


def guessed_facts(facts: DatasetFacts, design: Design) -> DatasetFacts:
    """Facts with a stand-in for the profile that will be released: levels as equally frequent, numbers as
    uniform between their bounds. Only sizes are planned with it."""
    columns = {c.name: _guess(c) for c in facts.schema.columns if c.name in design.columns}
    return replace(facts, profile=Profile(columns))


def _guess(column: Column) -> ColumnProfile:
    if is_counted(column):
        values = int(column.upper - column.lower) + 1
        return ColumnProfile(counts=(1.0,) * values, first=column.lower)
    quantiles = np.interp(PROBABILITIES, (0.0, 1.0), (column.lower, column.upper))
    return ColumnProfile(quantiles=tuple(quantiles.tolist()), probabilities=PROBABILITIES)
