"""The mean of a bounded column over the records in use.

For declared bounds a ≤ x ≤ b: with v = (x − (a + b)/2)/((b − a)/2) ∈ [−1, 1] and the mask u ∈ {0, 1}, noisy sums of uv (Δ = 2), of
u(v² − ½) (Δ = 1) and, where records can be out of use, of u (Δ = 1). ρ is split 85 : 10 : 5 (mask)
or 90 : 10; the sums compose. The mean is Σuv/N with N the released (or public) number in use, its
standard error from the residual variance and from the noise by the delta method:

    Var = s²/N + (σ_S² + v̄² σ_N²)/N²,   s² = Σu v²/N − v̄².

Proof of privacy: mechanisms.noisy_sum, for each sum; what follows is post-processing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import (
    Block,
    CountSum,
    FloatArray,
    Part,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.results import Estimate
from reticent_server.numerics.evaluate import in_use


@dataclass(frozen=True, slots=True)
class _MeanMap:
    design: Design
    column: str
    centre: float
    half: float

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            v = np.where(used, (block.columns[self.column] - self.centre) / self.half, 0.0)
            square = np.where(used, v * v - 0.5, 0.0)
        sums = (v[None, :], square[None, :])
        return (*sums, np.where(used, 0.0, -1.0)) if self.design.masked else sums


@dataclass(frozen=True, slots=True)
class MeanPlan(Planned):
    """A planned mean of a bounded column."""

    design: Design
    column: Column
    parts: tuple[Part, ...] = field()
    n: int = field()
    mechanism: str = "discrete Gaussian sums"
    reference: str = "Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def rho(self) -> int:
        return sum(part.rho for part in self.parts)

    @property
    def centre(self) -> float:
        return (self.column.lower + self.column.upper) / 2

    @property
    def half(self) -> float:
        return (self.column.upper - self.column.lower) / 2

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The privacy standard error where every record is in use."""
        return {"privacy_standard_error": _sd(self.parts[0], 2.0) * self.half / self.n}

    def run(self) -> Recipe:
        """One step; the value is clipped to the declared bounds."""
        step = SumStep("mean", self.parts, self._map())
        total, square, *counted = yield step
        noisy_n, sd_n = (float(counted[0].values[0]), counted[0].sd) if counted else (self.n, 0.0)
        N = max(1.0, noisy_n)
        v = min(1.0, max(-1.0, float(total.values[0]) / N))
        variance = max(0.0, float(square.values[0]) / N + 0.5 - v * v)
        privacy = sqrt(total.sd**2 + (v * sd_n) ** 2) / N
        error = self.half * sqrt(variance / N + privacy**2)
        value = self.centre + self.half * v
        return Estimate(
            value=value,
            standard_error=error,
            privacy_standard_error=self.half * privacy,
            confidence_level=CONFIDENCE,
            confidence_interval=normal_interval(value, error, self.column.lower, self.column.upper),
            n=self.n,
        )

    def _map(self) -> _MeanMap:
        return _MeanMap(self.design, self.column.name, self.centre, self.half or 1.0)


def plan_mean(facts: DatasetFacts, design: Design, column: Column, rho: int) -> MeanPlan:
    """A mean at `rho` (RHO_UNITS); design: mask and columns only."""
    m = facts.schema.unit.max_rows
    shares = (85, 10, 5) if design.masked else (90, 10)
    rhos = [rho * share // 100 for share in shares]
    parts: list[Part] = [VectorSum(1, 1.0, rhos[0], m), VectorSum(1, 0.5, rhos[1], m)]
    if design.masked:
        parts.append(CountSum(1, rhos[2], m))
    return MeanPlan(design, column, tuple(parts), facts.n)


def _sd(part: Part, sensitivity: float) -> float:
    return sensitivity * part.unit_rows / sqrt(2 * part.rho / RHO_UNITS)
