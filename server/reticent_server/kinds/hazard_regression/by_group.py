# SPDX-License-Identifier: Apache-2.0
"""A hazard regression for each level of a column, all of them in the passes of one and for the
charge of one.

Every group has the fit of Cox's partial likelihood (or the robust one) that its records would have
by themselves (partial_newton), a baseline hazard of its own included, with the same steps and the
same noise; terms are coded from public facts about the whole table.

Privacy (unconditional; neighbours replace one record, which may move from one group to another):
the k-th steps of all groups are one step by groups (mechanisms.disjoint_groups). Vectors, Gram sums
and running counts cost nothing more than one group's; the count of the records in use is of one bin
and costs twice, which the budget is made for. The steps compose adaptively, as one group's do.

Tables have one row a person here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.steps import SELECTION_NANOSECONDS, CountSum
from reticent_server.fitting import trust
from reticent_server.fitting.group_fits import Strata, in_lockstep
from reticent_server.fitting.own_profile import (
    OwnProfile,
    counts_of,
    profile_notes,
    selections_of,
    spread_verdict,
)
from reticent_server.kinds.hazard_regression.partial_budget import (
    PartialBudget,
    plan_partial_budget,
)
from reticent_server.kinds.hazard_regression.partial_plan import (
    PartialPlan,
    PersonsGround,
    persons_ground,
    plan_partial,
)
from reticent_server.kinds.hazard_regression.report import HazardFit
from reticent_server.kinds.hazard_regression.surv import Hazards, reading
from reticent_server.kinds.shared.by import ByPlan, by_plan, groups_by

_MEMBER_NANOSECONDS = 5  # of a record and group in one pass: to find the group's records
_STEP_MS = (
    60  # of a group's step after its release: what public persons lead to expect; measured 50
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHazardFit(HazardFit):
    """The fit of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHazardFits:
    """One fit a level of the column `by`, in the order of its declared levels. The errors of two
    groups are independent.
    """

    by: str
    groups: list[GroupHazardFit]
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class GroupHazardsPlan(Planned):
    """Planned fits, on one budget. own_profile: of all records in use, released first where no
    profile covers the columns.
    """

    fits: tuple[PartialPlan, ...]
    strata: Strata
    own_profile: OwnProfile | None
    deadline_shares: ClassVar = (0.3, 0.2)

    @property
    def outline(self) -> Outline:
        own = self.own_profile.rho if self.own_profile else 0
        return replace(
            self.first.outline,
            rho=own + rho_by_group(self.first.budget),
            passes=self._passes,
            column_ms=self._column_ms,
            draws=self.own_profile.draws if self.own_profile else 0,
            gaussian_counts=self._counts,
            selections=selections_of(self.own_profile),
        )

    @property
    def first(self) -> PartialPlan:
        """What all fits have in common stands in each."""
        return self.fits[0]

    @property
    def _counts(self) -> tuple[CountSum, ...]:
        each = self.first.budget.fit.counts(1)
        return (*counts_of(self.own_profile), *each * len(self.fits))

    @property
    def _passes(self) -> int:
        return self.first.outline.passes + (self.own_profile is not None)

    @property
    def _column_ms(self) -> int:
        """Planned time of an own profile's draws, of finding each group's records, of scores, and
        of each group's own steps.
        """
        draws = self.own_profile.draws if self.own_profile else 0
        member = self.first.facts.n * self._passes * _MEMBER_NANOSECONDS * len(self.fits)
        steps = self._passes * _STEP_MS * len(self.fits)
        records = self.first.outline.column_ms
        return (draws * SELECTION_NANOSECONDS + member) // 10**6 + records + steps

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the slopes of the group that is expected to be the smallest."""
        return from_ratios(self.forecast["terms"], self.forecast["privacy_to_sampling"])

    @property
    def forecast(self) -> Mapping[str, Any]:
        """As of one regression, of the group that is expected to be the smallest."""
        least = min(range(len(self.fits)), key=lambda g: self.fits[g].sizes.expected_n)
        found, own = dict(self.fits[least].forecast), self.own_profile
        ratios = found["privacy_to_sampling"]
        told = ratios if spread_verdict(own).intervals else [None] * len(ratios)
        notes = [*profile_notes(own), *found["notes"]]
        level = self.strata.levels[least]
        return {**found, "privacy_to_sampling": told, "notes": notes, "group": level}

    def run(self) -> Recipe:
        """The members of each fit's result, pass by pass together; always a reply."""
        fits = self.fits
        if self.own_profile:
            own, first = self.own_profile, self.first
            facts = own.profiled((yield own.step))
            ground = persons_ground(first.asked, facts, masked=own.masked)
            fits = tuple(replace(fit, ground=_own(fit, ground or fit.ground)) for fit in fits)
        found = yield from in_lockstep(self.strata, [fit.fitted(fit.ground) for fit in fits])
        return [self._members(fit) for fit in found]

    def _members(self, fit: HazardFit) -> dict[str, Any]:
        """Of a group's result, without intervals where the query's own profile has no spread."""
        members = {f.name: getattr(fit, f.name) for f in fields(fit)}
        members["warnings"] = [*members["warnings"], *profile_notes(self.own_profile)]
        known = spread_verdict(self.own_profile).intervals
        return members if known else members | trust.without_intervals(members)


def _own(fit: PartialPlan, ground: PersonsGround) -> PersonsGround:
    """The common ground with the group's own records and share."""
    coding = replace(ground.coding, design=fit.ground.coding.design)
    return replace(ground, coding=coding, share=fit.ground.share)


def rho_by_group(budget: PartialBudget) -> int:
    """What the steps cost of disjoint groups together, in RHO_UNITS."""
    return budget.rho - budget.fit.rho + budget.fit.rho_by_group(counted=False)


def _budget(planned: Callable[[int], PartialBudget], rho: int) -> PartialBudget:
    """The budget of one group whose steps cost at most `rho` of all groups together."""
    asked = rho
    budget = planned(asked)
    while (together := rho_by_group(budget)) > rho:
        asked = min(asked * rho // together, asked - 1)
        budget = planned(asked)
    return budget


def plan_hazards_by(
    facts: DatasetFacts,
    asked: Hazards,
    by: str,
    used: tuple[str, ...],
    level: float,
    rho: int,
    *,
    robust: bool,
    bins: int = 0,
) -> ByPlan:
    """Plans the fits of all groups at `rho` (RHO_UNITS) from public facts alone. used: the columns
    of the question beside `where`. InvalidQuery for a column that has no groups or is used
    otherwise.
    """
    groups = groups_by(facts, by, *used)
    strata = Strata(by, groups.codes, groups.levels)
    plan = plan_partial(
        facts, reading(asked, facts.schema, by), level, rho, robust=robust, bins=bins
    )
    own, left = plan.own_profile, rho - (plan.own_profile.rho if plan.own_profile else 0)
    typical = replace(
        plan, ground=replace(plan.ground, share=plan.ground.share / len(groups.codes))
    )
    beside, late = plan.ground.coding.size - plan.sizes.size, asked.start is not None

    def planned(each: int) -> PartialBudget:
        return plan_partial_budget(
            typical.sizes,
            each,
            masked=True,
            late=late,
            beside=beside,
            tested=bins > 0,
            robust=robust,
        )

    budget = _budget(planned, left)
    fits = tuple(
        _of_group(plan, budget, partial(strata.members, code=code), share)
        for code, share in zip(strata.codes, strata.shares(facts), strict=True)
    )
    together = GroupHazardsPlan(fits, strata, own)
    return by_plan(facts, together, strata, GroupHazardFit, GroupHazardFits)


def _of_group(
    plan: PartialPlan, budget: PartialBudget, members: Callable[[Design], Design], share: float
) -> PartialPlan:
    """The plan of one group, of the share of the records in use."""
    asked, ground = plan.asked, plan.ground
    beside = None if asked.beside is None else members(asked.beside)
    asked = replace(asked, design=members(asked.design), beside=beside)
    coding = replace(ground.coding, design=members(ground.coding.design))
    ground = replace(ground, coding=coding, share=ground.share * share)
    return replace(plan, asked=asked, ground=ground, budget=budget, own_profile=None)
