# SPDX-License-Identifier: Apache-2.0
"""The profile of a data set: private quantiles of every numeric column, noisy counts of the others.

One pass. Every column gets a share of ρ by what resolves it, and persons count once each, whatever
their rows (fitting.column_measures); shares compose by zCDP (Σ of the parts' ρ). A categorical
column's missing cells are one more bin of its counts, at no cost; a numeric column that may be
missing has a count of its own. Proofs: fitting.column_measures, mechanisms.quantile_tree and
mechanisms.noisy_sum.
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
    VectorSum,
)
from reticent_server.fitting.column_measures import (
    SURE,
    Measure,
    allocated,
    column_profile,
    measures,
)
from reticent_server.mechanisms.noisy_sum import noise_sd
from reticent_server.mechanisms.quantile_tree import scale


@dataclass(frozen=True, slots=True)
class _ProfileMap:
    """A record's cells, level codes and missing marks, or a person's: no column meets another."""

    measures: tuple[Measure, ...]
    unit_rows: int

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        return tuple(m.contributions(block, None, self.unit_rows) for m in self.measures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedColumn:
    """Quantiles at `probabilities`, or noisy counts by value from `first` on with the noise
    `count_sd`; missing: the noisy number of missing cells. Of persons with several rows: numbers of
    persons, each in equal parts for its rows.
    """

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
    records: int = field()
    """What counts are of: persons where they have several rows, else records."""
    unit_rows: int = field()
    complete: bool = field()
    """Whether counts add up to `records`: not where a person may be without a row."""

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.columns,
            rho=sum(part.rho for part in self.parts),
            mechanism="recursive exponential mechanisms and discrete Gaussian counts",
            reference="Kaplan, Schnapp & Stemmer (2022); Canonne, Kamath & Steinke (2020)",
            parts=self.parts,
            gaussian_counts=tuple(p for p in self.parts if isinstance(p, CountSum)),
            selections=tuple(p for p in self.parts if isinstance(p, QuantileTree)),
            holds_for_persons=True,  # it says nothing of sampling
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """By column the errors to expect of its numbers: counts in records (or persons), quantiles
        in shares of them. unresolved: columns whose quartiles, or shares of levels, the noise does
        not tell: each fit profiles them for itself (fitting.own_profile).
        """
        columns = {
            measure.column.name: precision_of(measure, part, self.records)
            for measure, part in zip(self.measures, self.parts, strict=True)
            if measure.what != "missing"
        }
        lost = [name for name, each in columns.items() if not each["resolved"]]
        return {"columns": columns, "unresolved": lost}

    def run(self) -> Recipe:
        """One step; the result lists every column's quantiles or counts."""
        released = yield SumStep("profile", self.parts, _ProfileMap(self.measures, self.unit_rows))
        by_column: dict[str, list[tuple[Measure, Part, Released]]] = {}
        for measure, part, value in zip(self.measures, self.parts, released, strict=True):
            by_column.setdefault(measure.column.name, []).append((measure, part, value))
        columns = {
            name: _shown(
                column_profile(
                    pairs[0][0].column,
                    pairs,
                    PROFILE_PROBABILITIES,
                    self.records,
                    complete=self.complete,
                )
            )
            for name, pairs in by_column.items()
        }
        return ProfileResult(columns=columns, probabilities=list(PROFILE_PROBABILITIES), n=self.n)


def plan_profile(facts: DatasetFacts, rho: int) -> ProfilePlan:
    """Splits `rho` (RHO_UNITS) over the columns by what resolves them. facts: public facts of the
    version.
    """
    planned = tuple(m for column in facts.schema.columns for m in measures(column))
    m_rows, records = facts.schema.unit.max_rows, facts.least_records
    rhos = allocated(planned, rho, m_rows, records)
    return ProfilePlan(
        measures=planned,
        parts=tuple(
            m.part(each, m_rows, records, PROFILE_PROBABILITIES)
            for m, each in zip(planned, rhos, strict=True)
        ),
        columns=tuple(column.name for column in facts.schema.columns),
        n=facts.n,
        records=records,
        unit_rows=m_rows,
        complete=not facts.schema.unit.many_rows,
    )


def precision_of(measure: Measure, part: Part, n: int) -> dict[str, Any]:
    """What the released numbers of a column are off by. count_sd: in records, or persons;
    rank_error: in shares of them, exceeded with probability e⁻².
    """
    if isinstance(part, QuantileTree):
        error = min(1.0, SURE * scale(part) / n)
        k = len(part.probabilities)
        return {"rank_error": error, "quantiles": k, "resolved": k > 1}
    assert isinstance(part, CountSum | VectorSum)  # noqa: S101 - every other measure is counted
    sd = noise_sd(part)
    return {"count_sd": sd, "resolved": sd <= measure.most_noise(n)}


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
