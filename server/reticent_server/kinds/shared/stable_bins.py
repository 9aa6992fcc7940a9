"""Interquartile range, and median by propose–test–release or by smooth sensitivity.

- `iqr`: bins of ratio 1 + 1/ln n, tried twice: (2ε₁, 2δ₁), ε₁ = ε/2.
- `median`, ptr: first the range s as above, then bins of width s n^(−1/3), tried twice: (4ε₁, 4δ₁),
  ε₁ = ε/4. With a profile s is the released range, and the median's two tests have all of the budget.
- `median`, smooth_sensitivity: one noisy value, (ε, δ).

All are for all n records of one column, without missing cells, of a table whose unit is a row. Proofs:
mechanisms.stable_bin, mechanisms.smooth_median. Source: Dwork & Smith (2009), §3.2; Dwork & Lei (2009);
Nissim, Raskhodnikova & Smith (2007).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log
from typing import Any

from reticent_server.domain.columns import GeometricBins, SmoothMedian, StableBin, UniformBins
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import ColumnStep, Released
from reticent_server.kinds.shared.columns import ColumnsMap, released_quartiles
from reticent_server.mechanisms import ptr, smooth_median, stable_bin
from reticent_server.numerics.lattices import lattice_between

SORT_NANOSECONDS = 400


@dataclass(frozen=True, slots=True)
class IqrPlan:
    """A planned interquartile range; satisfies EstimatorPlan."""

    column: Column
    part: StableBin
    n: int
    passes: int = 1
    mechanism: str = "propose-test-release on geometric bins"
    reference: str = "Dwork & Smith (2009), section 3.2; Dwork & Lei (2009)"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    @property
    def cost(self) -> PrivacyCost:
        return stable_bin.cost(self.part)

    @property
    def rho(self) -> int:
        return self.cost.rho

    @property
    def column_ms(self) -> int:
        return ceil(self.n * SORT_NANOSECONDS / 10**6)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """What a reply may be off by, and the records that could change without being noticed."""
        return {"relative_error": 0.5 / log_n(self.n), "margin_needed": _needed(self.part)}

    def run(self) -> Recipe:
        """One step; None where neither test passes."""
        (found,) = yield _step("interquartile range", self.part, self.column)
        return self._result(found) if found.passed else None

    def _result(self, found: Released) -> dict[str, Any]:
        value, low, high = found.values.tolist()
        return {"value": value, "bin": [low, high], "n": self.n}


@dataclass(frozen=True, slots=True)
class PtrMedianPlan:
    """A planned median by PTR; satisfies EstimatorPlan.

    scale: the range's part, or None where the profile's `spread` is used. median: the part, whose
    bins are made for `spread`, or for the range that `scale` releases.
    """

    column: Column
    scale: StableBin | None
    median: StableBin
    n: int
    mechanism: str = "propose-test-release on bins of a released scale"
    reference: str = "Dwork & Smith (2009), section 3.2; Dwork & Lei (2009)"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    @property
    def passes(self) -> int:
        return 2 if self.scale else 1

    @property
    def cost(self) -> PrivacyCost:
        first = stable_bin.cost(self.scale) if self.scale else PrivacyCost(0, 0, 0)
        return first + stable_bin.cost(self.median)

    @property
    def rho(self) -> int:
        return self.cost.rho

    @property
    def column_ms(self) -> int:
        return self.passes * ceil(self.n * SORT_NANOSECONDS / 10**6)

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {"error_in_ranges": self.n ** (-1 / 3) / 2, "margin_needed": _needed(self.median)}

    def run(self) -> Recipe:
        """One or two steps; None where a statistic is not safe in a bin of either partition."""
        median = self.median
        if self.scale:
            (spread,) = yield _step("interquartile range", self.scale, self.column)
            if not spread.passed:
                return None
            median = median_part(median, float(spread.values[0]), self.n)
        (found,) = yield _step("median", median, self.column)
        if not found.passed:
            return None
        value, low, high = found.values.tolist()
        return {"value": value, "bin": [low, high], "n": self.n}


@dataclass(frozen=True, slots=True)
class SmoothMedianPlan:
    """A planned median by smooth sensitivity; satisfies EstimatorPlan."""

    column: Column
    part: SmoothMedian
    n: int
    passes: int = 1
    mechanism: str = "discrete Laplace noise scaled by smooth sensitivity"
    reference: str = "Nissim, Raskhodnikova & Smith (2007); Chaudhuri & Hsu (2012), eq. 3"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    @property
    def cost(self) -> PrivacyCost:
        return smooth_median.cost(self.part)

    @property
    def rho(self) -> int:
        return self.cost.rho

    @property
    def column_ms(self) -> int:
        return 3 * ceil(self.n * SORT_NANOSECONDS / 10**6)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise depends on the data; only its smoothness is public."""
        return {"beta": smooth_median.smoothness(self.part.epsilon, self.part.delta)}

    def run(self) -> Recipe:
        """One step; always a reply. The noise's scale stays private."""
        (found,) = yield ColumnStep("median", (self.part,), ColumnsMap(self.columns))
        return {"value": float(found.values[0]), "n": self.n}


def plan_iqr(facts: DatasetFacts, column: Column, offer: PrivacyCost) -> IqrPlan:
    """An interquartile range for at most `offer`'s (ε, δ)."""
    return IqrPlan(column, iqr_part(facts, column, offer.epsilon // 2, offer.delta // 2), facts.n)


def plan_ptr_median(facts: DatasetFacts, column: Column, offer: PrivacyCost) -> PtrMedianPlan:
    """A median by PTR for at most `offer`'s (ε, δ)."""
    quartiles = released_quartiles(facts, column.name)
    tests = 4 if quartiles is None else 2
    scale = iqr_part(facts, column, offer.epsilon // tests, offer.delta // tests)
    spread = 0.0 if quartiles is None else quartiles[2] - quartiles[0]
    unscaled = StableBin(
        "median", scale.lattice, UniformBins(1.0), scale.epsilon, scale.delta, scale.unit_rows
    )
    median = median_part(unscaled, spread, facts.n)
    return PtrMedianPlan(column, scale if quartiles is None else None, median, facts.n)


def plan_smooth_median(facts: DatasetFacts, column: Column, offer: PrivacyCost) -> SmoothMedianPlan:
    """A median by smooth sensitivity at `offer`'s (ε, δ)."""
    bits = smooth_median.largest_bits(offer.epsilon)
    lattice = lattice_between(column.lower, column.upper, bits)
    return SmoothMedianPlan(column, SmoothMedian(lattice, offer.epsilon, offer.delta), facts.n)


def iqr_part(facts: DatasetFacts, column: Column, epsilon: int, delta: int) -> StableBin:
    """Bins of ratio 1 + 1/ln n from one lattice step to the range of the bounds."""
    lattice = lattice_between(column.lower, column.upper)
    ratio = 1 + 1 / log_n(facts.n)
    count = ceil(log(max(lattice.size, 2)) / log(ratio)) + 2
    return StableBin("iqr", lattice, GeometricBins(1.0, ratio, count), epsilon, delta)


def median_part(part: StableBin, spread: float, n: int) -> StableBin:
    """The part with bins of width s n^(−1/3), s = spread in the units of the data, 1 step at least."""
    steps = max(spread / part.lattice.step, 1.0)
    bins = UniformBins(steps * n ** (-1 / 3))
    return StableBin("median", part.lattice, bins, part.epsilon, part.delta, part.unit_rows)


def log_n(n: int) -> float:
    return max(log(n), 1.0)


def _step(label: str, part: StableBin, column: Column) -> ColumnStep:
    return ColumnStep(label, (part,), ColumnsMap((column.name,)))


def _needed(part: StableBin) -> int:
    return ptr.threshold(part.epsilon, part.delta)
