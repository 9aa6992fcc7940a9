# SPDX-License-Identifier: Apache-2.0
"""One fit for each level of a column, all of them in the passes of one and for the charge of one.

Every group has the fit that its records would have by themselves (fitting.fit_plan), with the same
steps, the same clips and the same noise; groups differ in what their records say, and a small one
has wide intervals, or none where the releases cannot tell. Terms are coded, and constants chosen,
from public facts: those of the whole table, and the groups' released shares.

Privacy: the k-th steps of all groups are one step by groups (mechanisms.disjoint_groups), which
costs what the dearest group's does, or what one record that moves costs: gradients, Gram matrices
and Jacobians nothing more, counts of one bin twice. Any step of a group may depend on what was
released before, of whatever group: the step's cost is what is proved at each point of the path, so
the costs add up (adaptive composition of zCDP). Groups have the same budget, so that their steps
are of the same kinds and Σ over the steps is what was planned; should one group's fit have ended,
the others go on. A gradient is clipped about 0: a public centre would be added to a private number
of records (fitting.contributions).

Where the unit is a person with several rows, a model that sums a person's scores first is refused.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import AllOf, Compare, Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.steps import SELECTION_NANOSECONDS, CountSum, Released, Step, SumStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.budget import FitBudget, Signal, Sizes, noise_ratio, plan_budget
from reticent_server.fitting.fit_plan import FitPlan, sized
from reticent_server.fitting.own_profile import (
    OwnProfile,
    counts_of,
    planned_ground,
    profile_notes,
    selections_of,
    spread_verdict,
)
from reticent_server.fitting.public.rows import LEAST_SHARE, level_shares
from reticent_server.fitting.regression_model import FitGround, RegressionModel, ground_of
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.trust import TrustVerdict, without_intervals
from reticent_server.fitting.whole_budget import plan_whole_budget
from reticent_server.mechanisms import disjoint_groups

_MEMBER_NANOSECONDS = (
    5  # of a record and group in one pass: to find the group's records; measured 1 to 2
)
_STEP_MS = (
    4  # of a group's step after its release: what public rows lead to expect; measured 1 to 3
)

ResponseT = TypeVar("ResponseT")
ResultT = TypeVar("ResultT")
Fitted = tuple[FitGround[ResponseT], StandardFit]


@dataclass(frozen=True, slots=True)
class Strata:
    """Disjoint groups of records: the stored values (G,) of `column`, and their names."""

    column: str
    codes: tuple[float, ...]
    levels: tuple[str, ...]

    def members(self, design: Design, code: float) -> Design:
        """The design on the records of one group."""
        here = Compare(self.column, "==", code)
        where = here if design.where is None else AllOf((design.where, here))
        return replace(design, where=where)

    def shares(self, facts: DatasetFacts) -> tuple[float, ...]:
        """(G,) public shares of the records; equal ones where nothing was released."""
        profile = facts.profile and facts.profile.columns.get(self.column)
        if not profile or profile.counts is None:
            return (1 / len(self.codes),) * len(self.codes)
        shares = level_shares(profile).tolist()
        places = (int(code - profile.first) for code in self.codes)
        return tuple(max(shares[k] if 0 <= k < len(shares) else 0.0, LEAST_SHARE) for k in places)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRegression(RegressionResult):
    """The fit of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFits:
    """One fit a level of the column `by`, in the order of its declared levels. The errors of two
    groups are independent.
    """

    by: str
    groups: list[GroupRegression]
    n: int


def in_lockstep(
    strata: Strata, recipes: Sequence[Generator[Step, tuple[Released, ...], ResultT]]
) -> Generator[Step, tuple[Released, ...], list[ResultT]]:
    """The groups' recipes (G,), each pass of the table shared by all that have a step left; their
    results in order.
    """
    results: dict[int, ResultT] = {}
    steps: dict[int, SumStep] = {}

    def advanced(g: int, released: tuple[Released, ...] | None) -> None:
        steps.pop(g, None)
        try:
            step = next(recipes[g]) if released is None else recipes[g].send(released)
        except StopIteration as stop:
            results[g] = stop.value
            return
        if not isinstance(step, SumStep):
            raise TypeError("groups share sums only")
        steps[g] = step

    for g in range(len(recipes)):
        advanced(g, None)
    while steps:
        running = sorted(steps)
        codes = [strata.codes[g] for g in running]
        step = disjoint_groups.grouped(
            steps[running[0]].label, strata.column, codes, [steps[g] for g in running]
        )
        sizes = [len(steps[g].parts) for g in running]
        rest = yield step
        for g, size in zip(running, sizes, strict=True):
            own, rest = rest[:size], rest[size:]
            advanced(g, own)
    return [results[g] for g in range(len(recipes))]


@dataclass(frozen=True, slots=True, eq=False)
class GroupFitsPlan(Planned, Generic[ResponseT]):
    """Planned fits, on one budget. own_profile: of all records in use, released first where no
    profile covers the columns. counted: whether scales are measured by counts of one bin.
    """

    fits: tuple[FitPlan[ResponseT], ...]
    strata: Strata
    own_profile: OwnProfile | None
    counted: bool
    deadline_shares: ClassVar = (0.5, 0.27)

    @property
    def outline(self) -> Outline:
        own = self.own_profile.rho if self.own_profile else 0
        counts = self.first.budget.counts(self.first.sizes.unit_rows)
        return Outline(
            answers=self.first.answers,
            columns=self.first.columns,
            rho=own + self.first.budget.rho_by_group(counted=self.counted),
            mechanism=self.first.mechanism,
            reference=self.first.reference,
            passes=self._passes,
            column_ms=self._column_ms,
            draws=self._draws,
            steady=self.first.steady,
            gaussian_counts=(*counts_of(self.own_profile), *counts * len(self.fits)),
            selections=selections_of(self.own_profile),
        )

    @property
    def first(self) -> FitPlan[ResponseT]:
        """What all fits have in common stands in each."""
        return self.fits[0]

    @property
    def _passes(self) -> int:
        return self.first.passes + (self.own_profile is not None)

    @property
    def _draws(self) -> int:
        return self.own_profile.draws if self.own_profile else 0

    @property
    def _column_ms(self) -> int:
        """Planned time of an own profile's draws, of finding each group's records, of scores, and
        of each group's own steps.
        """
        member = self._passes * _MEMBER_NANOSECONDS * len(self.fits)
        records = self.first.facts.n * (member + self._passes * self.first.model.nanoseconds)
        own = sum(fit.passes * _STEP_MS + fit.column_ms for fit in self.fits)
        return (self._draws * SELECTION_NANOSECONDS + records) // 10**6 + own

    @property
    def forecast(self) -> Mapping[str, Any]:
        """As of a regression, of the group that is expected to be the smallest."""
        least = min(range(len(self.fits)), key=lambda g: self.fits[g].sizes.expected_n)
        found = dict(self.fits[least].forecast)
        notes = [*profile_notes(self.own_profile), *found["notes"]]
        return {**found, "notes": notes, "group": self.strata.levels[least]}

    def run(self) -> Recipe:
        """The members of each fit's result, pass by pass together; always a reply."""
        fitted = yield from self.fitted()
        return [self.result(g, *found) for g, found in enumerate(fitted)]

    def result(self, g: int, ground: FitGround[ResponseT], fit: StandardFit) -> dict[str, Any]:
        """What a reply says of the fit of group g: without intervals where its records are too few
        for them.
        """
        plan = self.fits[g]
        result, verdict = plan.result(ground, fit), self._verdict(plan, ground, fit)
        if verdict.intervals:
            return result
        said = [*verdict.sentences, *result["warnings"]]
        return {**result, **without_intervals(result), "warnings": said}

    def _verdict(
        self, plan: FitPlan[ResponseT], ground: FitGround[ResponseT], fit: StandardFit
    ) -> TrustVerdict:
        signal = plan.model.signal(ground)
        eta = noise_ratio(replace(plan.sizes, expected_n=fit.count), plan.budget.rho, signal)
        group = trust.group(eta, measured=signal.scaled, profiled=self.own_profile is None)
        return spread_verdict(self.own_profile).then(group)

    def fitted(self) -> Generator[Step, tuple[Released, ...], list[Fitted[ResponseT]]]:
        """The recipe without its report: a ground and a fit for each group."""
        fits = self.fits
        if self.own_profile:
            own, first = self.own_profile, self.first
            facts = own.profiled((yield own.step))
            ground = ground_of(first.design, facts, first.model, masked=own.masked)
            fits = tuple(replace(fit, ground=_own(fit, ground or fit.ground)) for fit in fits)
        fitted = yield from in_lockstep(self.strata, [fit.fitted() for fit in fits])
        return fitted


def _own(fit: FitPlan[ResponseT], ground: FitGround[ResponseT]) -> FitGround[ResponseT]:
    """The common ground with the group's own records and share."""
    common, members = ground.coding.design, fit.design
    if ground.left_out is not None and ground.left_out.used is not None:
        group = () if members.where is None else (members.where,)
        members = replace(members, where=AllOf((*group, ground.left_out.used)))
    members = replace(members, terms=common.terms, baselines=common.baselines)
    coding = replace(ground.coding, design=members)
    return replace(ground, coding=coding, share=fit.ground.share)


def plan_group_fits(
    facts: DatasetFacts,
    design: Design,
    strata: Strata,
    model: RegressionModel[ResponseT],
    level: float,
    rho: int,
) -> GroupFitsPlan[ResponseT]:
    """Plans the fits of all groups at `rho` (RHO_UNITS) from public facts alone; design: reads the
    groups' column as well.

    InvalidQuery without response or terms, and for persons with several rows where their scores
    would be summed.
    """
    if design.response is None or not design.names:
        raise InvalidQuery("A regression needs a response and at least one term.")
    model.check(design.response)
    if model.of_persons and facts.schema.unit.max_rows > 1:
        raise InvalidQuery(
            "Where a person has several rows, by is not for this regression: ask for one group "
            "with where."
        )
    ground, own = planned_ground(
        facts, design, rho, lambda known, masked: ground_of(design, known, model, masked=masked)
    )
    shares = strata.shares(facts)
    left = rho - (own.rho if own else 0)
    typical = replace(ground, share=ground.share / len(strata.codes))
    named, sizes = sized(facts, model, typical, left, known=False)
    counted = _counted(named, ground)
    budget = _budget(sizes, left, replace(named.signal(ground), centred=True), counted=counted)
    fits = []
    for code, share in zip(strata.codes, shares, strict=True):
        members = strata.members(design, code)
        own_ground = replace(
            ground,
            coding=replace(ground.coding, design=strata.members(ground.coding.design, code)),
            share=ground.share * share,
        )
        own_model, own_sizes = sized(facts, model, own_ground, left, known=False)
        fits.append(
            FitPlan(
                facts, members, own_model, own_ground, budget, own_sizes, None, level, grouped=True
            )
        )
    return GroupFitsPlan(tuple(fits), strata, own, counted)


def _counted(model: RegressionModel[ResponseT], ground: FitGround[ResponseT]) -> bool:
    """Whether the family measures its scale by counts of one bin, which cost twice."""
    residuals = model.family(ground).residuals
    part = None if residuals is None else residuals.part(RHO_UNITS, 1)
    return isinstance(part, CountSum) and part.bins == 1


def _budget(sizes: Sizes, rho: int, signal: Signal, *, counted: bool) -> FitBudget:
    """The budget of one group whose steps cost at most `rho` of all groups together: counts cost
    twice.
    """
    planned = plan_whole_budget if signal.whole else plan_budget
    budget = planned(sizes, rho, signal, masked=True)
    asked = rho
    while (together := budget.rho_by_group(counted=counted)) > rho:
        asked = min(asked * rho // together, asked - 1)
        budget = planned(sizes, asked, signal, masked=True)
    return budget
