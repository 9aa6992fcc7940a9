# SPDX-License-Identifier: Apache-2.0
"""Numbers of records by group: one noisy count a level, Δ = √2 (with m rows of a unit, √2 m).

A record in use adds 1 to the count of its own group: replacing one moves at most two counts, by 1 each. Privacy:
mechanisms.noisy_sum, CountSum; kinds.shared.by.
"""

from dataclasses import dataclass
from typing import ClassVar

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.results import Estimate
from reticent_server.kinds.shared.by import group_estimates, group_mask, groups_by
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.tables import TablePlan, cells_part, level_axis


@dataclass(frozen=True, slots=True)
class GroupCountPlan(TablePlan):
    """A planned count of the records in use of each group."""

    taken: ClassVar = (0.05, 0.05)

    groups: Groups

    def run(self) -> Recipe:
        """One step; values are unbiased and may lie outside 0..n."""
        counts = self.counts(*(yield self.step))
        estimates = [
            Estimate(
                value=value,
                standard_error=counts.sd,
                confidence_level=CONFIDENCE,
                confidence_interval=normal_interval(value, counts.sd, 0.0, self.n),
                n=self.n,
            )
            for value in counts.values.tolist()
        ]
        return group_estimates(self.groups, estimates, self.n)


def plan_group_count(facts: DatasetFacts, where: str | None, by: str, rho: int) -> GroupCountPlan:
    """Counts at `rho` (RHO_UNITS). Raises InvalidQuery."""
    groups = groups_by(facts, by)
    axes = (level_axis(declared(facts, by)),)
    return GroupCountPlan(
        group_mask(facts, where, by), axes, cells_part(facts, axes, rho), facts.n, groups
    )
