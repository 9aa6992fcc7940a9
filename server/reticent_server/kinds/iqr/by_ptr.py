# SPDX-License-Identifier: Apache-2.0
"""An interquartile range by propose–test–release: bins of ratio 1 + 1/ln n, tried twice:
(2ε₁, 2δ₁), ε₁ = ε/2.

For all n records of one column, without missing cells, of a table whose unit is a row. Proof:
mechanisms.stable_bin. Source: Dwork & Smith (2009), §3.2; Dwork & Lei (2009).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

from reticent_server.domain.columns import StableBin
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.kinds.shared.stable_bins import (
    SORT_NANOSECONDS,
    iqr_part,
    log_n,
    margin_needed,
    stable_step,
    value_in_bin,
)
from reticent_server.mechanisms import stable_bin


@dataclass(frozen=True, slots=True)
class IqrPlan(Planned):
    """A planned interquartile range."""

    deadline_shares: ClassVar = (0.03, 0.17)

    column: Column
    part: StableBin
    n: int

    @property
    def outline(self) -> Outline:
        own_cost = stable_bin.cost(self.part)
        return Outline(
            columns=(self.column.name,),
            rho=own_cost.rho,
            mechanism="propose-test-release on geometric bins",
            reference="Dwork & Smith (2009), section 3.2; Dwork & Lei (2009)",
            column_ms=ceil(self.n * SORT_NANOSECONDS / 10**6),
            own_cost=own_cost,
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """What a reply may be off by, and the records that could change without being noticed."""
        return {"relative_error": 0.5 / log_n(self.n), "margin_needed": margin_needed(self.part)}

    def run(self) -> Recipe:
        """One step; None where neither test passes."""
        (released,) = yield stable_step("interquartile range", self.part, self.column)
        return value_in_bin(self.column, released, self.n) if released.passed else None


def plan_iqr(facts: DatasetFacts, column: Column, offer: PrivacyCost) -> IqrPlan:
    """An interquartile range for at most `offer`'s (ε, δ)."""
    return IqrPlan(column, iqr_part(facts, column, offer.epsilon // 2, offer.delta // 2), facts.n)
