# SPDX-License-Identifier: Apache-2.0
"""A median with noise scaled by smooth sensitivity: one noisy value, (ε, δ).

For all n records of one column, without missing cells, of a table whose unit is a row. Proof:
mechanisms.smooth_median. Source: Nissim, Raskhodnikova & Smith (2007).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

from reticent_server.domain.columns import SmoothMedian
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import ColumnStep
from reticent_server.fitting.results import Value
from reticent_server.kinds.shared.columns import ColumnsMap
from reticent_server.kinds.shared.stable_bins import SORT_NANOSECONDS
from reticent_server.mechanisms import smooth_median
from reticent_server.numerics.lattices import lattice_between


@dataclass(frozen=True, slots=True)
class SmoothMedianPlan(Planned):
    """A planned median by smooth sensitivity."""

    deadline_shares: ClassVar = (0.04, 0.17)

    column: Column
    part: SmoothMedian
    n: int

    @property
    def outline(self) -> Outline:
        own_cost = smooth_median.cost(self.part)
        return Outline(
            columns=(self.column.name,),
            rho=own_cost.rho,
            mechanism="discrete Laplace noise scaled by smooth sensitivity",
            reference="Nissim, Raskhodnikova & Smith (2007); Chaudhuri & Hsu (2012), eq. 3",
            column_ms=3 * ceil(self.n * SORT_NANOSECONDS / 10**6),
            own_cost=own_cost,
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise depends on the data; only its smoothness is public."""
        return {"beta": smooth_median.smoothness(self.part.epsilon, self.part.delta)}

    def run(self) -> Recipe:
        """One step; always a reply. The noise's scale stays private."""
        (released,) = yield ColumnStep("median", (self.part,), ColumnsMap(self.columns))
        value = float(released.values[0])
        return Value(value=float(round(value)) if self.column.kind.is_whole else value, n=self.n)


def plan_smooth_median(facts: DatasetFacts, column: Column, offer: PrivacyCost) -> SmoothMedianPlan:
    """A median by smooth sensitivity at `offer`'s (ε, δ)."""
    bits = smooth_median.largest_bits(offer.epsilon)
    lattice = lattice_between(column.lower, column.upper, bits)
    return SmoothMedianPlan(column, SmoothMedian(lattice, offer.epsilon, offer.delta), facts.n)
