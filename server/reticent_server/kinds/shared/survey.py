# SPDX-License-Identifier: Apache-2.0
"""Means and totals of a survey's design: weights, strata and primary sampling units.

A record of weight w counts as the share a = w/w_max ∈ [0, 1] of the declared upper bound (1 without
weights), 0 out of use. A mean first releases (a − 1, az), z = (x − centre)/half ∈ [−1, 1], as
kinds.mean.weighted has it, whence A = Σa, m = Σaz/A; a total releases az, z = x/max|x|. Then, with
the linearised value t = a(z − m)/(1 + |m|) ∈ [−1, 1] of a mean, t = az of a total, and G cells,
which are the combinations of stratum and unit, or strata, or one cell of all:

    sums      T_g = Σ_{i ∈ g} t_i                    VectorSum of e_g t       C = 1, Δ = 2
    squares   (1, √a(z − m)/(1 + |m|), t), in use    GramSum                  C = √3
    numbers   of records in g, in use or not         CountSum                 Δ = √2

*Privacy.* A record is in one cell at most, so it contributes e_g t of norm |t| ≤ 1: two records are
2 apart at most, attained by t = ±1 in one cell. m is released before; bounds, levels and w_max are
public; the primitives cut (mechanisms.noisy_sum, mechanisms.placed). The parts compose by zCDP.

*Estimate.* With units, drawn with replacement in strata h of n_h units with records,

    V = Σ_h n_h/(n_h − 1) Σ_{g ∈ h} (T_g − T̄_h)² − σ²G,     at least Σ(t − t̄)²

on (G − H)G_e/G degrees of freedom (fitting.cluster_scores.in_strata: units alone, and why σ²G). A
domain (`where`) keeps the units without records in it, as `subset` of a design does. Without units
records are drawn one by one in each stratum (H = 1 without strata): V = Σt² − Σ_h (T_h² − σ²)/n_h.
ALLOWED of the noise's standard deviation in V is added to it, as there. The error is √(V unit² +
p²), unit what brings t to the answer's scale, p the privacy noise of the first step, and the design
effect of a mean V over that of as many records drawn at random, Σw(x − m)²/(Σw n) (Kish 1965; `deff
= "replace"` of R's survey).

Source: Binder (1983); Särndal, Swensson & Wretman (1992, section 5.7). Attack:
tests/privacy/test_survey_privacy.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from scipy.stats import t as student

from reticent_server.domain.design import ColumnWeight, Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import (
    Block,
    Contribution,
    CountSum,
    FloatArray,
    GramSum,
    Placed,
    Released,
    SumStep,
    VectorSum,
)
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.cluster_scores import ALLOWED, Counts, LevelClusters, in_strata
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.normal import CONFIDENCE
from reticent_server.fitting.results import Estimate
from reticent_server.fitting.special_columns import reading, weighted_design
from reticent_server.fitting.trust.words import NO_WEIGHTS
from reticent_server.kinds.shared.clusters import checked, clusters_of
from reticent_server.kinds.shared.columns import declared
from reticent_server.mechanisms.quantise import exactly
from reticent_server.numerics.evaluate import in_use, shares

_UNITS, _RECORDS = 0.75, 0.125
"""Of ρ, the part that tells the error: between units its noise is far above that of the estimate,
and two thirds are best where it is a few times V; of records an eighth is enough. """
_SQUARES, _NUMBERS = 8, 16  # of the rest, one part each
_MIDDLE = 0.5  # expected share of a record's weight, where public facts do not tell
_LEAST = 0.05  # of the records' squares, a variance within strata
_PERSONS = (
    "A survey's design is for tables with one row a person: leave weights, cluster and strata out, "
    "or ask about features of persons (`persons`), which is a table of one row a person."
)
_ITSELF = "weights must name another column than the one that is averaged or added up."


@dataclass(frozen=True, slots=True)
class SurveyRows:
    """A record's values. weight: None for 1. pivot, scale: m and 1 + |m|, or 0 and 1."""

    design: Design
    weight: ColumnWeight | None
    column: Column
    cells: LevelClusters
    centre: float
    half: float

    @property
    def largest(self) -> float:
        """w_max."""
        return 1.0 if self.weight is None else self.weight.largest

    def shared(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """(rows,) a and z."""
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            z = (block.columns[self.column.name] - self.centre) / (self.half or 1.0)
            z = np.clip(np.nan_to_num(z, nan=0.0), -1.0, 1.0)
        used = in_use(self.design, block)
        a = np.ones(len(z)) if self.weight is None else shares(self.weight, block)
        return np.where(used, a, 0.0), z


@dataclass(frozen=True, slots=True)
class EstimateMap:
    """Gives (2, rows) (a − 1, az) of a mean, (1, rows) az of a total."""

    rows: SurveyRows
    total: bool

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        a, z = self.rows.shared(block)
        return ((a * z)[None, :] if self.total else np.stack([a - 1, a * z]),)


@dataclass(frozen=True, slots=True)
class LinearisedMap:
    """Gives e_g t, the roots of squares (3, rows) and g (rows,), about the public m."""

    rows: SurveyRows
    m: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        a, z = self.rows.shared(block)
        off = (z - self.m) / (1 + abs(self.m))
        used = in_use(self.rows.design, block)
        t = a * off
        group = np.broadcast_to(self.rows.cells.places(block), t.shape)
        roots = np.stack([used.astype(np.float64), np.sqrt(a) * off, t])
        cells = self.rows.cells.size
        return Placed(t[None, :], group, cells), roots, group.astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyEstimate(Estimate):
    """A mean or total of a survey's design. sum_of_weights, design_effect: of a mean; null where
    noise hides it, and of a total. clusters: noisy number of sampling units with records, null
    without any; degrees_of_freedom: of the t law of the interval. warnings: why the interval is the
    whole range."""

    sum_of_weights: float | None
    design_effect: float | None
    clusters: float | None
    degrees_of_freedom: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variance:
    """V of t with its allowance; what was taken off, over V; degrees of freedom; noisy number of
    units, None without any."""

    value: float
    allowed: float
    noise: float
    freedom: float
    units: float | None


@dataclass(frozen=True, slots=True)
class SurveyPlan(Planned):
    """A planned mean or total of a survey."""

    deadline_shares: ClassVar = (0.05, 0.06)

    rows: SurveyRows
    total: bool
    units: bool
    n: int
    rho_units: int

    @property
    def first(self) -> VectorSum:
        """Of the estimate."""
        return exactly(VectorSum(1 if self.total else 2, 1.0, self.rho_units - self._second), 1.0)

    @property
    def second(self) -> tuple[VectorSum, GramSum, CountSum]:
        """Of its error."""
        left, cells = self._second, self.rows.cells.size
        squares, numbers = left // _SQUARES, left // _NUMBERS
        sums = VectorSum(cells, 1.0, left - squares - numbers, groups=cells)
        return sums, exactly(GramSum(3, sqrt(3), squares), 1.0), CountSum(cells, numbers)

    @property
    def _second(self) -> int:
        """ρ, in RHO_UNITS."""
        return int(self.rho_units * (_UNITS if self.units else _RECORDS))

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.rows.design.columns,
            rho=self.rho_units,
            mechanism="discrete Gaussian sums",
            reference="Binder (1983); Canonne, Kamath & Steinke (2020)",
            parts=(self.first, *self.second),
            passes=2,
            gaussian_counts=(self.second[2],),
        )

    @property
    def precision(self) -> ForecastPrecision:
        """Where every record is in use, with half of the largest weight."""
        return single("sum" if self.total else "mean", self._noise, None)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The privacy standard error where every record is in use, with half of the largest
        weight."""
        return {"privacy_standard_error": self._noise}

    @property
    def _noise(self) -> float:
        each = planned_sd(self.first) * self.rows.half
        return each * self.rows.largest if self.total else each / (self.n * _MIDDLE)

    def run(self) -> Recipe:
        """Two steps; always a reply."""
        (sums,) = yield SumStep("estimate", (self.first,), EstimateMap(self.rows, self.total))
        A = 1.0 if self.total else max(self.n + float(sums.values[0]), 1.0)
        m = 0.0 if self.total else min(1.0, max(-1.0, float(sums.values[1]) / A))
        released = yield SumStep("linearised", self.second, LinearisedMap(self.rows, m))
        V = self._variance(released)
        known = self.total or bool(trust.clear(A, sums.sd))
        unit = self.rows.half * (self.rows.largest if self.total else (1 + abs(m)) / A)
        noise = sums.sd * (1 if self.total else sqrt(1 + m * m) / (1 + abs(m)))
        value = (
            float(sums.values[0]) * unit if self.total else self.rows.centre + self.rows.half * m
        )
        return self._reply(value, V, unit, noise, None if self.total else (A, known), released[1])

    def _variance(self, released: tuple[Released, ...]) -> Variance:
        """V of the sums, squares and numbers."""
        sums, squares, numbers = released
        counts, H = Counts.of(numbers), self.rows.cells.strata or 1
        used = max(float(squares.values[0, 0]), 2.0)
        own = float(squares.values[2, 2])
        rows = max(own - float(sums.values.sum()) ** 2 / used, squares.sd)
        if self.units:
            off, cells, strata = in_strata(sums.values[None, :], counts.there, H)
            N = sums.sd**2 * cells
            value = max(float(np.sum(off**2)) - N, rows)
            unsure = sqrt(2 / max(cells, 1) * ((value + N) ** 2 - value**2))
            freedom = max(cells - strata, 1) * counts.effective / counts.present
            return Variance(value, ALLOWED * unsure, N / value, max(freedom, 1.0), counts.present)
        n = np.maximum(numbers.values[counts.there], 2.0)
        T = sums.values[counts.there]
        value = max(own - float(np.sum((T**2 - sums.sd**2) / n)), _LEAST * own, squares.sd)
        noise = np.sum((4 * T**2 * sums.sd**2 + 2 * sums.sd**4) / n**2) + squares.sd**2
        return Variance(value, ALLOWED * sqrt(float(noise)), 0.0, max(used - H, 1.0), None)

    def _reply(
        self,
        value: float,
        V: Variance,
        unit: float,
        noise: float,
        weights: tuple[float, bool] | None,
        squares: Released,
    ) -> SurveyEstimate:
        """unit: of t in those of the data, 0 where declared bounds coincide. noise: of the first
        step, in t. weights: A of a mean and whether it is above its noise.
        """
        sampling, privacy = V.value + V.allowed, noise * unit
        error = sqrt(sampling + noise**2) * unit
        freedom = V.freedom * (1 + noise**2 / sampling) ** 2
        lower, upper = self._ends
        verdicts = (
            () if V.units is None else (trust.few_units(V.units), trust.units_hidden(V.noise)),
            () if weights is None or weights[1] else (NO_WEIGHTS,),
        )
        warnings = tuple(said for each in verdicts for said in each if said)
        half = float(student.ppf((1 + CONFIDENCE) / 2, freedom)) * error
        ends = (min(max(value - half, lower), upper), min(max(value + half, lower), upper))
        if warnings:
            error, privacy, ends = upper - lower, min(privacy, upper - lower), (lower, upper)
        spread, used = float(squares.values[1, 1]), float(squares.values[0, 0])
        told = weights is not None and not warnings and bool(trust.clear(spread, squares.sd))
        return SurveyEstimate(
            value=value,
            standard_error=error,
            privacy_standard_error=privacy,
            confidence_level=CONFIDENCE,
            confidence_interval=ends,
            n=self.n,
            sum_of_weights=None if weights is None else weights[0] * self.rows.largest,
            design_effect=V.value * used / (weights[0] * spread) if told and weights else None,
            clusters=V.units,
            degrees_of_freedom=freedom,
            warnings=warnings,
        )

    @property
    def _ends(self) -> tuple[float, float]:
        """What the quantity can be."""
        column = self.rows.column
        if not self.total:
            return column.lower, column.upper
        most = self.n * self.rows.largest
        return min(column.lower, 0.0) * most, max(column.upper, 0.0) * most


def plan_survey(
    facts: DatasetFacts,
    design: Design,
    column: Column,
    asked: tuple[str | None, str | None, str | None],
    rho: int,
    *,
    total: bool,
) -> SurveyPlan:
    """A mean or total at `rho` (RHO_UNITS); design: mask and columns. asked: the columns of
    weights, cluster and strata. Raises InvalidQuery."""
    weights, cluster, strata = asked
    if facts.schema.unit.many_rows:
        raise InvalidQuery(_PERSONS)
    if weights == column.name:
        raise InvalidQuery(_ITSELF)
    names = tuple(name for name in (strata, cluster) if name is not None)
    cells = clusters_of(facts, names, stratified=strata is not None)
    if cluster is not None:
        checked(cells)
    for name in names:
        design = reading(design, declared(facts, name))
    read = weighted_design(design, facts.schema, weights)
    weight = read.weight if isinstance(read.weight, ColumnWeight) else None
    ends = (column.lower, column.upper)
    centre, half = (0.0, max(map(abs, ends))) if total else (sum(ends) / 2, (ends[1] - ends[0]) / 2)
    rows = SurveyRows(replace(read, weight=None), weight, column, cells, centre, half)
    return SurveyPlan(rows, total, cluster is not None, facts.n, rho)
