"""The profile of a data set: private quantiles of every numeric column, noisy counts of the others.

One pass. Every column gets a share of ρ by its kind; shares compose by zCDP (Σ of the parts' ρ). A
categorical column's missing cells are one more bin of its counts, at no cost; a numeric column that
may be missing has a count of its own. Proofs: mechanisms.quantile_tree and mechanisms.noisy_sum.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent_server.domain.facts import (
    PROFILE_PROBABILITIES,
    ColumnProfile,
    DatasetFacts,
    Profile,
)
from reticent_server.domain.plan import Recipe
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import (
    Block,
    CountSum,
    FloatArray,
    Part,
    QuantileTree,
    Released,
    SumStep,
)
from reticent_server.numerics.grids import candidate_grid, cell_codes, repeats

_QUANTILE_WEIGHT, _COUNT_WEIGHT, _MISSING_WEIGHT = 16, 2, 1


def has_quantiles(column: Column) -> bool:
    """Numeric and integer columns have quantiles; dummies and categories have counts."""
    numeric = column.kind in (ColumnKind.NUMERIC, ColumnKind.INTEGER)
    return numeric and not column.is_dummy


@dataclass(frozen=True, slots=True)
class _Measure:
    """One part of the profile: a column's quantiles, its counts, or its number of missing cells."""

    column: Column
    what: str

    @property
    def weight(self) -> int:
        weights = {"quantiles": _QUANTILE_WEIGHT, "counts": _COUNT_WEIGHT}
        return weights.get(self.what, _MISSING_WEIGHT)

    @property
    def bins(self) -> int:
        levels = int(self.column.upper - self.column.lower) + 1
        return levels + self.column.may_be_missing

    def part(self, rho: int, unit_rows: int) -> Part:
        if self.what == "quantiles":
            grid = candidate_grid(self.column)
            return QuantileTree(grid, PROFILE_PROBABILITIES, rho, unit_rows, repeats(grid))
        return CountSum(self.bins if self.what == "counts" else 1, rho, unit_rows)

    def codes(self, block: Block) -> FloatArray:
        """(rows,) codes of this part; −1 where the record does not count."""
        values = block.columns[self.column.name]
        missing = block.missing.get(self.column.name)
        if self.what == "missing":
            return np.where(block.missing[self.column.name], 0.0, -1.0)
        if self.what == "quantiles":
            used = None if missing is None else ~missing
            return cell_codes(values, candidate_grid(self.column), used)
        codes = values - self.column.lower
        return codes if missing is None else np.where(missing, float(self.bins - 1), codes)


def _measures(column: Column) -> list[_Measure]:
    if not has_quantiles(column):
        return [_Measure(column, "counts")]
    missing = [_Measure(column, "missing")] if column.may_be_missing else []
    return [_Measure(column, "quantiles"), *missing]


@dataclass(frozen=True, slots=True)
class _ProfileMap:
    """A record's cells, level codes and missing marks: no column meets another."""

    measures: tuple[_Measure, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        return tuple(measure.codes(block) for measure in self.measures)


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """A planned profile; satisfies EstimatorPlan."""

    measures: tuple[_Measure, ...]
    parts: tuple[Part, ...]
    columns: tuple[str, ...]
    n: int
    passes: int = 1
    mechanism: str = "recursive exponential mechanisms and discrete Gaussian counts"
    reference: str = "Kaplan, Schnapp & Stemmer (2022); Canonne, Kamath & Steinke (2020)"

    @property
    def rho(self) -> int:
        return sum(part.rho for part in self.parts)

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {}

    def run(self) -> Recipe:
        """One step; the result lists every column's quantiles or counts."""
        released = yield SumStep("profile", self.parts, _ProfileMap(self.measures))
        columns: dict[str, dict[str, Any]] = {}
        for measure, value in zip(self.measures, released, strict=True):
            columns.setdefault(measure.column.name, {}).update(_shown(measure, value))
        return {"columns": columns, "probabilities": list(PROFILE_PROBABILITIES), "n": self.n}


def plan_profile(facts: DatasetFacts, rho: int) -> ProfilePlan:
    """Splits `rho` (RHO_UNITS) over the columns by kind. facts: public facts of the version."""
    measures = [m for column in facts.schema.columns for m in _measures(column)]
    unit = rho // sum(m.weight for m in measures)
    m_rows = facts.schema.unit.max_rows
    return ProfilePlan(
        measures=tuple(measures),
        parts=tuple(m.part(unit * m.weight, m_rows) for m in measures),
        columns=tuple(column.name for column in facts.schema.columns),
        n=facts.n,
    )


def _shown(measure: _Measure, released: Released) -> dict[str, Any]:
    values = [float(v) for v in released.values]
    if measure.what == "quantiles":
        return {"quantiles": values}
    counts = [max(0.0, v) for v in values]
    if measure.what == "missing":
        return {"missing": counts[0], "count_sd": released.sd}
    found: dict[str, Any] = {"counts": counts, "count_sd": released.sd}
    if measure.column.may_be_missing:
        found |= {"counts": counts[:-1], "missing": counts[-1]}
    return found


def profile_of(result: Mapping[str, Any], release_id: str) -> Profile:
    """The catalogue's value of a released profile's result."""
    return Profile(
        columns={name: _column_profile(found) for name, found in result["columns"].items()},
        release_id=release_id,
    )


def _column_profile(found: Mapping[str, Any]) -> ColumnProfile:
    quantiles, counts = found.get("quantiles"), found.get("counts")
    return ColumnProfile(
        quantiles=tuple(quantiles) if quantiles else None,
        counts=tuple(counts) if counts else None,
        missing=found.get("missing"),
    )
