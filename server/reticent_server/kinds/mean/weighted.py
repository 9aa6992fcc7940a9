# SPDX-License-Identifier: Apache-2.0
"""The mean of a bounded column over records that count by their weights: m = Σwx/Σw, with the
linearised error of one stage of sampling.

A record of weight w counts as the share a = w/w_max ∈ [0, 1] of the declared upper bound, 0 out of
use, and has z = (x − centre)/half ∈ [−1, 1]. Released, in one step:

    sums      (a − 1, az)   ‖·‖² ≤ (1 − a)² + a² ≤ 1   VectorSum  C = 1, Δ = 2
    squares   (a, az)       ‖·‖² ≤ 2                   GramSum    C = √2, Δ = 2√2

The weights' sum n + Σ(a − 1) comes for nothing: two records are as far apart by az alone (a = 1,
z = ±1). With A = Σa and S = Σaz, m = S/A and

    Var m = (n_e/(n_e − 1)) Σa²(z − m)²/A² + σ²(1 + m²)/A²,   n_e = A²/Σa²

the first by linearisation (Särndal, Swensson & Wretman 1992, section 5.7), with n_e, the effective
number of records (Kish 1965), in the place of n, which may have records out of use; Σa²(z − m)² is
at least its noise. What is not above the noise of A has the whole declared range as its interval.

Privacy: each value is a function of one record and of declared bounds; the primitives cut
(mechanisms.noisy_sum). Two parts add up in zCDP. Attack:
tests/privacy/test_weighted_mean_privacy.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import ColumnWeight, Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray, GramSum, SumStep, VectorSum
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.results import Estimate
from reticent_server.fitting.special_columns import weighted_design
from reticent_server.fitting.trust import clear
from reticent_server.mechanisms.quantise import exactly
from reticent_server.numerics.evaluate import in_use, shares

_SQUARES = 8  # of ρ, one part for the squares: noise of a variance of many records is small
_MIDDLE = 0.5  # expected share of a record's weight, where public facts do not tell


@dataclass(frozen=True, slots=True)
class WeightedMeanMap:
    """Gives (2, rows) (a − 1, az) and (2, rows) (a, az)."""

    design: Design
    weight: ColumnWeight
    column: Column

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            z = (block.columns[self.column.name] - self.centre) / (self.half or 1.0)
            z = np.clip(np.nan_to_num(z, nan=0.0), -1.0, 1.0)
        a = np.where(in_use(self.design, block), shares(self.weight, block), 0.0)
        return np.stack([a - 1, a * z]), np.stack([a, a * z])

    @property
    def centre(self) -> float:
        """The middle of the declared bounds."""
        return (self.column.lower + self.column.upper) / 2

    @property
    def half(self) -> float:
        """Half of the declared width, by which values are scaled to [−1, 1]."""
        return (self.column.upper - self.column.lower) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedEstimate(Estimate):
    """A weighted mean. sum_of_weights: noisy; times the value it is a total. effective_n: how many
    records of equal weights are worth as much, (Σw)²/Σw²; null where noise hides it.
    """

    sum_of_weights: float
    effective_n: float | None


@dataclass(frozen=True, slots=True)
class WeightedMeanPlan(Planned):
    """A planned weighted mean."""

    deadline_shares: ClassVar = (0.05, 0.06)

    rows: WeightedMeanMap
    n: int
    rho_units: int

    @property
    def parts_asked(self) -> tuple[VectorSum, GramSum]:
        """The sums of weights and weighted values, and their squares, which share ρ."""
        squares = self.rho_units // _SQUARES
        sums = VectorSum(2, 1.0, self.rho_units - squares)
        return exactly(sums, 1.0), exactly(GramSum(2, sqrt(2), squares), 1.0)

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.rows.design.columns,
            rho=self.rho_units,
            mechanism="discrete Gaussian sums",
            reference="Särndal, Swensson & Wretman (1992); Canonne, Kamath & Steinke (2020)",
            parts=self.parts_asked,
            gaussian_counts=(),
        )

    @property
    def precision(self) -> ForecastPrecision:
        """Where every record is in use, with half of the largest weight."""
        return single("mean", self._noise, None)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The privacy standard error where every record is in use, with half of the largest
        weight."""
        return {"privacy_standard_error": self._noise}

    @property
    def _noise(self) -> float:
        return planned_sd(self.parts_asked[0]) * self.rows.half / (self.n * _MIDDLE)

    def run(self) -> Recipe:
        """One step; the value is clipped to the declared bounds."""
        sums, squares = yield SumStep("weighted mean", self.parts_asked, self.rows)
        A, S = max(self.n + float(sums.values[0]), 1.0), float(sums.values[1])
        m = min(1.0, max(-1.0, S / A))
        weights = float(squares.values[0, 0])
        known = bool(clear(A, sums.sd))
        effective = A**2 / weights if known and clear(weights, squares.sd) else None
        residuals = np.array([-m, 1.0])
        least = squares.sd * float(residuals @ residuals)
        spread = max(float(residuals @ squares.values @ residuals), least)
        few = 1.0 if effective is None else max(effective, 2.0) / (max(effective, 2.0) - 1)
        privacy = self.rows.half * sums.sd * sqrt(1 + m * m) / A
        error = sqrt(few * spread * (self.rows.half / A) ** 2 + privacy**2)
        if not known:
            error = privacy = 2 * self.rows.half
        value, column = self.rows.centre + self.rows.half * m, self.rows.column
        return WeightedEstimate(
            value=value,
            standard_error=error,
            privacy_standard_error=privacy,
            confidence_level=CONFIDENCE,
            confidence_interval=normal_interval(value, error, column.lower, column.upper)
            if known
            else (column.lower, column.upper),
            n=self.n,
            sum_of_weights=A * self.rows.weight.largest,
            effective_n=effective,
        )


def plan_weighted_mean(
    facts: DatasetFacts, design: Design, column: Column, weights: str, rho: int
) -> WeightedMeanPlan:
    """A mean of records that count by the column `weights`, at `rho` (RHO_UNITS); design: mask and
    columns. Raises InvalidQuery."""
    if weights == column.name:
        raise InvalidQuery("weights must name another column than the one of the mean.")
    read = weighted_design(design, facts.schema, weights)
    assert isinstance(read.weight, ColumnWeight)  # noqa: S101 - a named column's
    rows = WeightedMeanMap(replace(read, weight=None), read.weight, column)
    return WeightedMeanPlan(rows, facts.n, rho)
