# SPDX-License-Identifier: Apache-2.0
"""A description: one step with the parts of every column, all at the same ρ (kinds.describe.measure
has what they are).

Privacy. Each part is a noisy sum over records: a count of cells (Δ = √2) or a Gram sum (Δ = √2·R²),
for all groups together. Parts of different columns, and of one, are made of one record each and
compose by zCDP: the charge is the sum of their ρ. Two records in different groups with different
values in every column are as far apart in every part as is charged, so no smaller sum would do:
tests/privacy/test_describe_privacy.py attains it. Records that `where` leaves out, and those of no
known group, contribute nothing.

The split among columns is made of public facts: the schema's kinds and bounds, the released
quantiles. Where no profile has the quantiles of a column of numbers, a first step releases them
(fitting.own_profile, 5 to 20 % of ρ), and the second one's bins and ranges are made of what it
released: adaptive composition of zCDP. All else is post-processing. Sources: mechanisms.noisy_sum;
McSherry (2009), Theorem 4, for the groups.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, Contribution, CountSum, Part, Released, SumStep
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.fitting.normal import CONFIDENCE, half_width
from reticent_server.fitting.own_profile import (
    OwnProfile,
    counts_of,
    lacking,
    plan_own_profile,
    selections_of,
)
from reticent_server.formula import mask_design
from reticent_server.kinds.describe.columns import is_number, measure_of, number_of_bins
from reticent_server.kinds.describe.figures import Description, GroupSize
from reticent_server.kinds.describe.measure import ColumnMeasure, ColumnReleases, GroupedRows
from reticent_server.kinds.shared.by import groups_by
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.groups import Groups, moments_ms
from reticent_server.mechanisms import noisy_sum
from reticent_server.numerics.evaluate import in_use

MAX_COLUMNS = 64  # of a table that is read
_COUNT_NANOSECONDS = 100  # of a cell, planned for bins, marks and counts; measured: 40


@dataclass(frozen=True, slots=True)
class DescribeMap:
    """Every measure's contributions, in order."""

    design: Design
    groups: Groups
    measures: tuple[ColumnMeasure, ...]

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        group = self.groups.places(block, in_use(self.design, block))
        rows = GroupedRows(block, group, self.groups.size)
        return tuple(part for measure in self.measures for part in measure.contributions(rows))


@dataclass(frozen=True, slots=True)
class DescribePlan(Planned):
    """A planned description. share: ρ of each part, in RHO_UNITS; own: a first step for numbers
    that no profile covers.
    """

    deadline_shares: ClassVar = (0.09, 0.12)

    facts: DatasetFacts
    described: tuple[Column, ...]
    groups: Groups
    design: Design
    own: OwnProfile | None
    share: int

    @property
    def outline(self) -> Outline:
        parts = self.own.step.parts if self.own else self._step(self._measures(self.facts)).parts
        return Outline(
            columns=self.design.columns,
            rho=self._rho,
            mechanism="discrete Gaussian counts and sums",
            reference="Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)",
            parts=parts,
            passes=1 + (self.own is not None),
            column_ms=self._column_ms,
            gaussian_counts=(*counts_of(self.own), *self._counts),
            selections=selections_of(self.own),
        )

    @property
    def _counts(self) -> tuple[CountSum, ...]:
        """Of columns and groups. Where bins follow an own profile, as many as there may be."""
        parts = [part for m in self._measures(self.facts) for part in self._parts(self._widest(m))]
        return tuple(part for part in parts if isinstance(part, CountSum))

    def _widest(self, measure: ColumnMeasure) -> ColumnMeasure:
        if self.own is None or not is_number(measure.column):
            return measure
        bins = number_of_bins(self.facts, self.groups.size, self.share)
        return replace(measure, axis=replace(measure.axis, size=max(bins, measure.axis.size)))

    @property
    def _rho(self) -> int:
        weight = sum(measure.weight for measure in self._measures(self.facts))
        return self.share * weight + (self.own.rho if self.own else 0)

    @property
    def _column_ms(self) -> int:
        sums = sum(len(self._parts(measure)) > 1 for measure in self._measures(self.facts))
        counting = ceil(self.facts.n * len(self.described) * _COUNT_NANOSECONDS / 10**6)
        return counting + sums * moments_ms(self.facts.n, self.groups.size)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The largest noise of one count."""
        counts = [self._parts(measure)[0] for measure in self._measures(self.facts)]
        worst = max(noisy_sum.noise_sd(part) for part in counts if isinstance(part, CountSum))
        return {"count_standard_error": worst}

    def run(self) -> Recipe:
        """1. Quantiles, where no profile has them. 2. Counts and sums of every column. 3. Figures
        by column and group.
        """
        facts = self.facts
        if self.own is not None:
            facts = self.own.profiled((yield self.own.step))
        measures = self._measures(facts)
        released = iter((yield self._step(measures)))
        found = [self._releases(released, len(self._parts(measure))) for measure in measures]
        pairs = list(zip(measures, found, strict=True))
        return Description(
            by=self.groups.column,
            sizes=self._sizes(pairs),
            columns=[measure.described(each) for measure, each in pairs],
            confidence_level=CONFIDENCE,
            n=self.facts.n,
        )

    def _measures(self, facts: DatasetFacts) -> tuple[ColumnMeasure, ...]:
        return tuple(measure_of(facts, c, self.groups, self.share) for c in self.described)

    def _parts(self, measure: ColumnMeasure) -> tuple[Part, ...]:
        return measure.parts(self.facts, self.groups, self.share)

    def _step(self, measures: tuple[ColumnMeasure, ...]) -> SumStep:
        parts = tuple(part for measure in measures for part in self._parts(measure))
        return SumStep("describe", parts, DescribeMap(self.design, self.groups, measures))

    @property
    def _total(self) -> float | None:
        return None if self.design.masked else float(self.facts.n)

    def _releases(self, released: Iterator[Released], parts: int) -> ColumnReleases:
        return ColumnReleases(tuple(islice(released, parts)), self.groups, self._total)

    def _sizes(self, pairs: list[tuple[ColumnMeasure, ColumnReleases]]) -> list[GroupSize]:
        """Every column counts each group once: the mean of its counts, weighted by their noise."""
        cells = [measure.cells_of(each) for measure, each in pairs]
        return [
            _size(name, [(float(c.counts.sum()), c.noise(np.ones(len(c.counts)))) for c in of])
            for name, of in zip(pairs[0][1].names, zip(*cells, strict=True), strict=True)
        ]


def _size(name: str, counted: list[tuple[float, float]]) -> GroupSize:
    """counted: numbers and the variances of their noise; where these are 0, the number is
    public.
    """
    if counted[0][1] == 0.0:
        number, error = counted[0]
    else:
        w = np.array([1 / variance for _, variance in counted])
        number = float(w @ np.array([value for value, _ in counted]) / w.sum())
        error = 1 / sqrt(float(w.sum()))
    half = half_width(error)
    ends = (max(0.0, number - half), max(0.0, number + half))
    return GroupSize(level=name, number=number, standard_error=error, confidence_interval=ends)


def plan_description(
    facts: DatasetFacts,
    names: tuple[str, ...] | None,
    by: str | None,
    where: str | None,
    rho: int,
) -> DescribePlan:
    """A description at `rho` (RHO_UNITS). Raises InvalidQuery, InvalidPrivacy."""
    columns = _columns(facts, names, by)
    groups = Groups(None) if by is None else groups_by(facts, by, *(c.name for c in columns))
    design = mask_design(() if by is None else (by,), facts.schema, where)
    read = tuple(dict.fromkeys((*design.columns, *(c.name for c in columns))))
    design = replace(design, columns=read)
    own = _own_profile(facts, columns, design, rho)
    rest = rho - (own.rho if own else 0)
    share = rest // sum(measure_of(facts, column, groups, rho).weight for column in columns)
    if share < 1:
        raise InvalidPrivacy("epsilon is too small for so many columns; raise it, or name fewer.")
    planned = DescribePlan(facts, columns, groups, design, own, share)
    planned.column_ms  # noqa: B018 (raises where a column has too many cells)
    return planned


def _own_profile(
    facts: DatasetFacts, columns: tuple[Column, ...], design: Design, rho: int
) -> OwnProfile | None:
    """Of the columns of other numbers that no profile resolves."""
    numbers = replace(design, columns=tuple(c.name for c in columns if is_number(c)))
    wanted = lacking(facts, numbers)
    own = replace(design, columns=tuple(c.name for c in wanted))
    return plan_own_profile(facts, own, rho, wanted) if wanted else None


def _columns(
    facts: DatasetFacts, names: tuple[str, ...] | None, by: str | None
) -> tuple[Column, ...]:
    """Those that are named, or all but `by`. Raises InvalidQuery."""
    if names is None:
        names = tuple(c.name for c in facts.schema.columns if c.name != by)
    if len(set(names)) != len(names):
        raise InvalidQuery("columns names a column twice.")
    if not 1 <= len(names) <= MAX_COLUMNS:
        raise InvalidQuery(f"Name 1 to {MAX_COLUMNS} columns that are described.")
    return tuple(declared(facts, name) for name in names)
