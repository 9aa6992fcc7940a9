# SPDX-License-Identifier: Apache-2.0
"""The mean of a bounded column over the records in use.

For declared bounds a ≤ x ≤ b: with v = (x − (a + b)/2)/((b − a)/2) ∈ [−1, 1] for a record in use,
noisy sums of (v, 1.4v²) and, where records can be out of use, of 1, released together: two records
are never farther apart than v = −1 and v = 1, so squares and number come with the noise of a sum of
v alone. The mean is Σv/N with N the released (or public) number in use, its standard error from the
residual variance and from the noise by the delta method:

    Var = s²/N + (σ_S² + v̄² σ_N²)/N²,   s² = Σv²/N − v̄².

Where a person has several rows, a second step releases how persons vary, for s²/N in the variance
(kinds.mean.persons).

Proof of privacy: mechanisms.noisy_sum, power_sum; what follows is post-processing.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import (
    Block,
    FloatArray,
    Part,
    PowerSum,
    Released,
    Step,
    SumStep,
)
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.results import Estimate
from reticent_server.kinds.mean.persons import SHARE, PersonSpread, PersonSpreadMap
from reticent_server.kinds.shared.ranges import public_sd
from reticent_server.numerics.evaluate import in_use

SQUARE = 1.4  # of v²: the largest that costs nothing where records are counted as well is √2
# of v: v and a v², whose sums give the mean and the variance
_POWERS = ((0.0, 1.0), (0.0, 0.0, SQUARE))
_COUNTED = (*_POWERS, (1.0,))  # the same and 1, for records in use that are not known to be all


@dataclass(frozen=True, slots=True)
class _MeanMap:
    design: Design
    column: str
    centre: float
    half: float

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            v = (block.columns[self.column] - self.centre) / self.half
        return (np.where(used, v, np.nan),)


@dataclass(frozen=True, slots=True)
class MeanPlan(Planned):
    """A planned mean of a bounded column. expected_sd: the column's, by its profile."""

    deadline_shares: ClassVar = (0.03, 0.09)

    design: Design
    column: Column
    part: PowerSum
    n: int
    spread: PersonSpread | None = None
    expected_sd: float | None = None

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.design.columns,
            rho=self.part.rho + (self.spread.rho if self.spread else 0),
            mechanism="discrete Gaussian sums",
            reference="Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)",
            passes=1 if self.spread is None else 2,
            of_persons=self.spread is not None,
            gaussian_counts=(),
        )

    @property
    def centre(self) -> float:
        """The middle of the declared bounds, from which values are measured."""
        return (self.column.lower + self.column.upper) / 2

    @property
    def half(self) -> float:
        """Half of the declared width: values less the centre lie within ± this."""
        return (self.column.upper - self.column.lower) / 2

    @property
    def precision(self) -> ForecastPrecision:
        """Where every record is in use."""
        sampling = None if self.expected_sd is None else self.expected_sd / sqrt(self.n)
        return single("mean", _sd(self.part, 2.0) * self.half / self.n, sampling)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The privacy standard error where every record is in use."""
        return {"privacy_standard_error": _sd(self.part, 2.0) * self.half / self.n}

    def run(self) -> Recipe:
        """One step, with persons two; the value is clipped to the declared bounds."""
        (sums,) = yield SumStep("mean", (self.part,), self._map())
        total, squares, *counted = sums.values.tolist()
        N = max(1.0, counted[0] if counted else self.n)
        sd_n = sums.sd if counted else 0.0
        v = min(1.0, max(-1.0, total / N))
        variance = max(0.0, squares / SQUARE / N - v * v)
        privacy = sqrt(sums.sd**2 + (v * sd_n) ** 2) / N
        sampling = variance / N
        if self.spread is not None:
            sampling = yield from self._between(self.spread, v, sqrt(variance), N)
        error = self.half * sqrt(sampling + privacy**2)
        value = self.centre + self.half * v
        return Estimate(
            value=value,
            standard_error=error,
            privacy_standard_error=self.half * privacy,
            confidence_level=CONFIDENCE,
            confidence_interval=normal_interval(value, error, self.column.lower, self.column.upper),
            n=self.n,
        )

    def _between(
        self, spread: PersonSpread, v: float, s: float, N: float
    ) -> Generator[Step, tuple[Released, ...], float]:
        """The sampling variance of v over persons (kinds.mean.persons)."""
        rows = PersonSpreadMap(
            self.design,
            self.column.name,
            self.centre,
            self.half or 1.0,
            v,
            spread.m,
            spread.reach(s),
        )
        (released,) = yield SumStep("spread of persons", (spread.part(s),), rows)
        return spread.variance(released, s, N)

    def _map(self) -> _MeanMap:
        return _MeanMap(self.design, self.column.name, self.centre, self.half or 1.0)


def plan_mean(facts: DatasetFacts, design: Design, column: Column, rho: int) -> MeanPlan:
    """A mean at `rho` (RHO_UNITS); design: mask and columns only."""
    m, spread = facts.schema.unit.max_rows, None
    powers = _COUNTED if design.masked else _POWERS
    if facts.persons is not None:
        spread = PersonSpread(rho // SHARE, m, facts.persons)
        rho -= spread.rho
    part = PowerSum(powers, rho, m)
    return MeanPlan(design, column, part, facts.n, spread, public_sd(facts, column))


def _sd(part: Part, sensitivity: float) -> float:
    return sensitivity * part.unit_rows / sqrt(2 * part.rho / RHO_UNITS)
