# SPDX-License-Identifier: Apache-2.0
"""Sums of a bounded column by group, over the records in use.

A record in use of group g has the vector e_g x ∈ R^G with a ≤ x ≤ b, the declared bounds stretched
to 0; one out of use has the vector 0. It contributes e_g x − c(1, …, 1), c public, and the sums are
what is released + nc. The squared norm of a contribution is (x − c)² + (G − 1)c² or Gc², largest at
x = a or b, so

    C² = max((a − c)², (b − c)²) + (G − 1)c²,

and of c between b/G and (a + b)/2 the nearer to 0 is the best (for |a| ≤ |b|; with a and b
exchanged for the others): the centre of the smallest ball that holds all contributions. For one
group C = (b − a)/2, as without groups; for a = −b, C = b, attained inside a group; for a = 0 and
two groups, C = b/√2, attained between them. Replacing a record moves the sums by 2C at most, with m
rows of a unit by 2Cm. An interval is for the sum in this table, so the noise alone widens it.

Privacy: mechanisms.noisy_sum, VectorSum; kinds.shared.by.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, Contribution, Placed, SumStep, VectorSum
from reticent_server.fitting.normal import CONFIDENCE, half_width
from reticent_server.kinds.shared.by import ByPlan, by_plan, group_mask, groups_by
from reticent_server.kinds.shared.groups import Groups
from reticent_server.mechanisms import noisy_sum
from reticent_server.mechanisms.quantise import exactly
from reticent_server.numerics.evaluate import in_use

_PARTS = 64  # of a range, to one of which a centre is rounded: C grows by less than 10⁻⁴ of itself


@dataclass(frozen=True, slots=True)
class GroupSumMap:
    """(G, rows) (e_g x − c)/C."""

    design: Design
    groups: Groups
    column: str
    centre: float
    radius: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        group = self.groups.places(block, in_use(self.design, block))
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            x = np.where(group >= 0, block.columns[self.column], 0.0)
            v = (x - self.centre) / self.radius
        return (Placed(v[None, :], group, self.groups.size, -self.centre / self.radius),)


@dataclass(frozen=True, slots=True)
class GroupSumPlan(Planned):
    """Planned sums by group."""

    deadline_shares: ClassVar = (0.05, 0.05)

    map_fn: GroupSumMap
    part: VectorSum
    n: int

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.map_fn.design.columns,
            rho=self.part.rho,
            mechanism="discrete Gaussian sums",
            reference="Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)",
            holds_for_persons=True,  # it says nothing of sampling
            gaussian_counts=(),
        )

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of each group's sum."""
        return single("sum", self.map_fn.radius * noisy_sum.noise_sd(self.part), 0.0)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The expected noise of each group's sum."""
        return {"privacy_standard_error": self.map_fn.radius * noisy_sum.noise_sd(self.part)}

    def run(self) -> Recipe:
        """One step; values are unbiased and may lie outside what the bounds allow."""
        (sums,) = yield SumStep("sums", (self.part,), self.map_fn)
        error = self.map_fn.radius * sums.sd
        values = self.map_fn.radius * sums.values + self.n * self.map_fn.centre
        half = half_width(error)
        fixed = {"standard_error": error, "confidence_level": CONFIDENCE, "n": self.n}
        return [
            {"value": value, "confidence_interval": (value - half, value + half), **fixed}
            for value in values.tolist()
        ]


def smallest_ball(low: float, high: float, groups: int) -> tuple[float, float]:
    """(c, C): of e_g x with low ≤ x ≤ high, low ≤ 0 ≤ high; C = 1 where all x are 0."""
    middle, end = (low + high) / 2, high if abs(high) >= abs(low) else low
    parts = ceil(_PARTS / ((high - low) or 1.0))  # of a unit: a whole number of them is the centre
    centre = round(min(middle, end / groups, key=abs) * parts) / parts
    reach = max(high - centre, centre - low)
    return centre, sqrt(reach**2 + (groups - 1) * centre**2) or 1.0


def plan_group_sum(
    facts: DatasetFacts, where: str | None, by: str, column: Column, rho: int
) -> ByPlan:
    """Sums at `rho` (RHO_UNITS). Raises InvalidQuery."""
    groups = groups_by(facts, by, column.name)
    design = group_mask(facts, where, by, column.name)
    m, G = facts.schema.unit.max_rows, groups.size
    low, high = min(column.lower, 0.0), max(column.upper, 0.0)
    centre, radius = smallest_ball(low, high, G)
    part = VectorSum(G, 1.0, rho, m, groups=G)
    if centre:  # what a record adds to the sums of other groups is taken off n times
        part = exactly(part, abs(centre) / radius)
    if column.kind.is_whole:
        unit = 1 / (ceil(_PARTS / ((high - low) or 1.0)) * radius)
        part = noisy_sum.unrounded(part, unit, facts.n)
    plan = GroupSumPlan(GroupSumMap(design, groups, column.name, centre, radius), part, facts.n)
    return by_plan(facts, plan, groups)
