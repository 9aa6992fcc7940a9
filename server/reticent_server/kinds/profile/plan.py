# SPDX-License-Identifier: Apache-2.0
"""The profile of a data set: private quantiles of every numeric column, noisy counts of the others.

One pass. Every column gets a share of ρ by its kind; shares compose by zCDP (Σ of the parts' ρ). A
categorical column's missing cells are one more bin of its counts, at no cost; a numeric column that
may be missing has a count of its own. Proofs: mechanisms.quantile_tree and mechanisms.noisy_sum.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reticent_server.domain.facts import (
    PROFILE_PROBABILITIES,
    ColumnProfile,
    DatasetFacts,
    Profile,
)
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.steps import (
    Block,
    CountSum,
    FloatArray,
    Part,
    QuantileTree,
    Released,
    SumStep,
)
from reticent_server.fitting.column_measures import SURE, Measure, column_profile, measures
from reticent_server.mechanisms.noisy_sum import noise_sd
from reticent_server.mechanisms.quantile_tree import scale


@dataclass(frozen=True, slots=True)
class _ProfileMap:
    """A record's cells, level codes and missing marks: no column meets another."""

    measures: tuple[Measure, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        return tuple(measure.codes(block, None) for measure in self.measures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedColumn:
    """Quantiles at `probabilities`, or noisy counts by value from `first` on with the noise `count_sd`;
    missing: the noisy number of missing cells."""

    quantiles: list[float] | None = None
    probabilities: list[float] | None = None
    counts: list[float] | None = None
    count_sd: float | None = None
    first: float | None = None
    missing: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileResult:
    """What is released of every column, by its name."""

    columns: dict[str, ReleasedColumn]
    probabilities: list[float]
    n: int


@dataclass(frozen=True, slots=True)
class ProfilePlan(Planned):
    """A planned profile."""

    measures: tuple[Measure, ...]
    parts: tuple[Part, ...] = field()
    columns: tuple[str, ...] = field()
    n: int = field()
    total: float | None = field()  # of the records in counts, where persons have one row each

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.columns,
            rho=sum(part.rho for part in self.parts),
            mechanism="recursive exponential mechanisms and discrete Gaussian counts",
            reference="Kaplan, Schnapp & Stemmer (2022); Canonne, Kamath & Steinke (2020)",
            parts=self.parts,
            holds_for_persons=True,  # it says nothing of sampling
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Of each column what its numbers will be off by: counts in records, quantiles in shares of the records. unresolved: columns
        of which the noise leaves less than a quarter of the records apart, or more than a level's equal share of them."""
        columns = {
            measure.column.name: precision_of(measure, part, self.n)
            for measure, part in zip(self.measures, self.parts, strict=True)
            if measure.what != "missing"
        }
        lost = [name for name, each in columns.items() if not each["resolved"]]
        return {"columns": columns, "unresolved": lost}

    def run(self) -> Recipe:
        """One step; the result lists every column's quantiles or counts."""
        released = yield SumStep("profile", self.parts, _ProfileMap(self.measures))
        by_column: dict[str, list[tuple[Measure, Part, Released]]] = {}
        for measure, part, value in zip(self.measures, self.parts, released, strict=True):
            by_column.setdefault(measure.column.name, []).append((measure, part, value))
        columns = {
            name: _shown(
                column_profile(pairs[0][0].column, pairs, PROFILE_PROBABILITIES, self.total)
            )
            for name, pairs in by_column.items()
        }
        return ProfileResult(columns=columns, probabilities=list(PROFILE_PROBABILITIES), n=self.n)


def plan_profile(facts: DatasetFacts, rho: int) -> ProfilePlan:
    """Splits `rho` (RHO_UNITS) over the columns by kind. facts: public facts of the version."""
    planned = [m for column in facts.schema.columns for m in measures(column)]
    unit = rho // sum(m.weight for m in planned)
    m_rows = facts.schema.unit.max_rows
    return ProfilePlan(
        measures=tuple(planned),
        parts=tuple(
            m.part(unit * m.weight, m_rows, facts.least_records, PROFILE_PROBABILITIES)
            for m in planned
        ),
        columns=tuple(column.name for column in facts.schema.columns),
        n=facts.n,
        total=None if facts.schema.unit.many_rows else float(facts.n),
    )


_COARSE = 0.1
"""Of the records: a quantile that may be off by more says little of where a quarter of them lies."""


def precision_of(measure: Measure, part: Part, n: int) -> dict[str, Any]:
    """What the released numbers of a column are off by. count_sd: in records; rank_error: in shares of the records, exceeded with probability e⁻²."""
    if isinstance(part, QuantileTree):
        error = min(1.0, SURE * scale(part) / n)
        resolved = error <= _COARSE and len(part.probabilities) > 1
        return {"rank_error": error, "quantiles": len(part.probabilities), "resolved": resolved}
    assert isinstance(part, CountSum)  # noqa: S101 - every other measure is a count
    sd = noise_sd(part)
    return {"count_sd": sd, "resolved": sd <= n / measure.bins}


def _shown(known: ColumnProfile) -> ReleasedColumn:
    """What a release says of a column: only what it has."""
    ranked, counted = known.quantiles is not None, known.counts is not None
    return ReleasedColumn(
        quantiles=list(known.quantiles or ()) if ranked else None,
        probabilities=list(known.probabilities) if ranked else None,
        counts=list(known.counts or ()) if counted else None,
        count_sd=known.count_sd if counted else None,
        first=known.first if counted else None,
        missing=known.missing,
    )


def profile_of(result: Mapping[str, Any], release_id: str) -> Profile:
    """The catalogue's value of a released profile's result."""
    columns = {name: _column_profile(x) for name, x in result["columns"].items()}
    return Profile(columns=columns, release_id=release_id)


def _column_profile(known: Mapping[str, Any]) -> ColumnProfile:
    quantiles, counts = known.get("quantiles"), known.get("counts")
    return ColumnProfile(
        quantiles=tuple(quantiles) if quantiles else None,
        counts=tuple(counts) if counts else None,
        missing=known.get("missing"),
        probabilities=tuple(known.get("probabilities", PROFILE_PROBABILITIES)),
        first=known.get("first", 0.0),
        count_sd=known.get("count_sd"),
    )
