# SPDX-License-Identifier: Apache-2.0
"""A median by propose–test–release.

First the range s in bins of ratio 1 + 1/ln n, then bins of width s n^(−1/3), each tried twice:
(4ε₁, 4δ₁), ε₁ = ε/4. With a profile s is the released range, and the median's two tests have all of
the budget.

For all n records of one column, without missing cells, of a table whose unit is a row. Proof:
mechanisms.stable_bin. Source: Dwork & Smith (2009), §3.2; Dwork & Lei (2009).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

from reticent_server.domain.columns import StableBin, UniformBins
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.kinds.shared.columns import released_quartiles
from reticent_server.kinds.shared.stable_bins import (
    SORT_NANOSECONDS,
    iqr_part,
    margin_needed,
    stable_step,
    value_in_bin,
)
from reticent_server.mechanisms import stable_bin


@dataclass(frozen=True, slots=True)
class PtrMedianPlan(Planned):
    """A planned median by PTR.

    scale: the range's part, or None where the profile's `spread` is used. median: the part, whose
    bins are made for `spread`, or for the range that `scale` releases.
    """

    deadline_shares: ClassVar = (0.04, 0.2)

    column: Column
    scale: StableBin | None
    median: StableBin
    n: int

    @property
    def outline(self) -> Outline:
        passes = 2 if self.scale else 1
        return Outline(
            columns=(self.column.name,),
            rho=self._own_cost.rho,
            mechanism="propose-test-release on bins of a released scale",
            reference="Dwork & Smith (2009), section 3.2; Dwork & Lei (2009)",
            passes=passes,
            column_ms=passes * ceil(self.n * SORT_NANOSECONDS / 10**6),
            own_cost=self._own_cost,
        )

    @property
    def _own_cost(self) -> PrivacyCost:
        first = stable_bin.cost(self.scale) if self.scale else PrivacyCost(0, 0, 0)
        return first + stable_bin.cost(self.median)

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {
            "error_in_ranges": self.n ** (-1 / 3) / 2,
            "margin_needed": margin_needed(self.median),
        }

    def run(self) -> Recipe:
        """One or two steps; None where a statistic is not safe in a bin of either partition."""
        median = self.median
        if self.scale:
            (spread,) = yield stable_step("interquartile range", self.scale, self.column)
            if not spread.passed:
                return None
            median = median_part(median, float(spread.values[0]), self.n)
        (released,) = yield stable_step("median", median, self.column)
        if not released.passed:
            return None
        return value_in_bin(self.column, released, self.n)


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


def median_part(part: StableBin, spread: float, n: int) -> StableBin:
    """The part with bins of width s n^(−1/3), s = spread in the units of the data, 1 step at
    least."""
    steps = max(spread / part.lattice.step, 1.0)
    bins = UniformBins(steps * n ** (-1 / 3))
    return StableBin("median", part.lattice, bins, part.epsilon, part.delta, part.unit_rows)
