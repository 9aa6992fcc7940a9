# SPDX-License-Identifier: Apache-2.0
"""A planned fit of Cox's partial likelihood: from public facts to steps, and from releases to the
result.

The forecast runs the same public model on the follow-up that the profile leads to expect: events
and censorings are spread over time as the profile's times are, in the profile's share.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.steps import (
    SELECTION_NANOSECONDS,
    CountSum,
    FloatArray,
    Released,
    Step,
    VectorSum,
)
from reticent_server.fitting import trust
from reticent_server.fitting.budget import Sizes
from reticent_server.fitting.coding import Coding, code_terms
from reticent_server.fitting.expected_intervals import NO_INTERVALS
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.own_profile import (
    OwnProfile,
    counts_of,
    planned_ground,
    profile_notes,
    selections_of,
    spread_verdict,
)
from reticent_server.fitting.public.coordinates import Coordinates, public_coordinates
from reticent_server.fitting.public.rows import draw_public_rows, marginal
from reticent_server.fitting.public.standardise import Location
from reticent_server.fitting.row_tail import LengthGrid, allowance_covariance
from reticent_server.fitting.trust import TrustVerdict
from reticent_server.fitting.trust.thresholds import PLAIN_NOISE_ALONE
from reticent_server.fitting.whitening import unwhitened
from reticent_server.fitting.whole_budget import WHOLE_STEPS
from reticent_server.fitting.whole_scores import UNBOUNDED
from reticent_server.kinds.hazard_regression.constant_terms import refuse_constant
from reticent_server.kinds.hazard_regression.long_tails import long_tails
from reticent_server.kinds.hazard_regression.offset import public_middle
from reticent_server.kinds.hazard_regression.partial_budget import (
    PartialBudget,
    plan_partial_budget,
)
from reticent_server.kinds.hazard_regression.partial_newton import (
    PartialNewton,
    slopes_whitening,
)
from reticent_server.kinds.hazard_regression.partial_report import LONG_TAILS, partial_fit_result
from reticent_server.kinds.hazard_regression.partial_score import FollowUpColumns
from reticent_server.kinds.hazard_regression.public_persons import PersonsModel, RiskTable
from reticent_server.kinds.hazard_regression.report import HazardFit
from reticent_server.kinds.hazard_regression.strata import one_after_the_other, strata_means
from reticent_server.kinds.hazard_regression.surv import Hazards
from reticent_server.kinds.shared.answers import PARTIAL_LIKELIHOOD, ROBUST_HAZARDS
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.follow_up.question import (
    FollowUp,
    with_fine_grid,
)
from reticent_server.numerics.matrices import power

_NANOSECONDS = 400  # planned for a record and regressor in one pass: measured 60
_WIDE = 4.0  # squared radius per coordinate, of the sizes of a fit
RADIUS = 2.0  # R² for each regressor, of the weights of a robust fit: as of a robust logit
_EVENTS = 0.3  # of the records, those that have the event, where nobody knows
_TINY = 1e-9  # of a number that is divided by
_LEAST_SHARE = 1e-3  # of the records, those with the event: a plan counts on no fewer


@dataclass(frozen=True, slots=True, eq=False)
class PersonsGround:
    """Public: the coding with a constant first and the strata's indicators last, after k slopes;
    its coordinates; the middle of the offset (hazard_regression.offset), and the rows' offsets
    from it.
    """

    coding: Coding
    coordinates: Coordinates
    middle: float
    offsets: FloatArray | float
    share: float
    terms: int

    @property
    def slopes(self) -> Coding:
        """Without the constant and the indicators."""
        coding, k = self.coding, self.terms
        design = replace(coding.design, intercept=False, terms=coding.design.terms[:k])
        return replace(coding, design=design, locations=coding.locations[:k])


def persons_ground(
    asked: Hazards, facts: DatasetFacts, *, masked: bool = True
) -> PersonsGround | None:
    """None where no profile covers the columns."""
    rows = draw_public_rows(asked.whole, facts, masked=masked)
    if rows is None or asked.design.response is None:
        return None
    terms = code_terms(asked.whole, rows)
    coding = Coding(
        terms.design, terms.locations, asked.design.response, Location(centre=0.0, scale=1.0)
    )
    coordinates = public_coordinates(coding.standardised(rows.X))
    middle = public_middle(asked.design, rows)
    offsets = 0.0 if asked.design.offset is None else rows.offset - middle
    terms_asked = len(asked.design.terms)
    return PersonsGround(coding, coordinates, middle, offsets, rows.share, terms_asked)


@dataclass(frozen=True, slots=True, eq=False)
class PartialPlan(Planned):
    """A planned fit. ground: replaced by that of `own_profile` once it is released."""

    deadline_shares: ClassVar = (0.26, 0.06)

    asked: Hazards
    facts: DatasetFacts
    budget: PartialBudget
    ground: PersonsGround
    own_profile: OwnProfile | None
    level: float
    robust: bool
    bins: int = 0

    @property
    def outline(self) -> Outline:
        return Outline(
            answers=ROBUST_HAZARDS if self.robust else PARTIAL_LIKELIHOOD,
            columns=self.asked.design.columns,
            rho=self.budget.rho + (self.own_profile.rho if self.own_profile else 0),
            mechanism=f"noisy Newton ({self._scores}), discrete Gaussian sums",
            reference="Cox (1975); Breslow (1974); Avella-Medina, Bradshaw & Loh (2023)",
            passes=self._passes,
            column_ms=self._column_ms,
            draws=self._draws,
            gaussian_counts=self._gaussian_counts,
            selections=selections_of(self.own_profile),
        )

    @property
    def _scores(self) -> str:
        return "weighted scores of hazards" if self.robust else "scores cut as a whole"

    @property
    def _gaussian_counts(self) -> tuple[CountSum, ...]:
        counts = self.budget.fit.counts(self.sizes.unit_rows)
        return (*counts_of(self.own_profile), *counts)

    @property
    def _passes(self) -> int:
        fit = self.budget.fit
        beside = 2 + (self.own_profile is not None) + (self.bins > 0)
        return len(fit.rounds) + fit.steps + beside

    @property
    def _draws(self) -> int:
        return self.own_profile.draws if self.own_profile else 0

    @property
    def _column_ms(self) -> int:
        cells = self.facts.n * (self.sizes.size + 2) * self._passes
        return (self._draws * SELECTION_NANOSECONDS + cells * _NANOSECONDS) // 10**6

    @property
    def sizes(self) -> Sizes:
        """Those of the slopes."""
        k, m = len(self.asked.design.terms), self.facts.schema.unit.max_rows
        expected = self.facts.n * self.ground.share
        return Sizes(k, _WIDE * k, self.facts.n, expected, m)

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where: of what the parts would cost alone."""
        own = self.own_profile.rho if self.own_profile else 0
        rest = {name: rho / self.rho for name, rho in self.budget.shares.items()}
        left = 1 - sum(rest.values())
        return rest | {name: left * x for name, x in self.budget.fit.shares(own).items()}

    @property
    def precision(self) -> ForecastPrecision:
        """Those of the slopes."""
        return from_ratios(self.forecast["terms"], self.forecast["privacy_to_sampling"])

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The slopes' privacy over sampling standard errors."""
        verdict = spread_verdict(self.own_profile).then(self.strata_verdict)
        terms = [term.name for term in self.asked.design.terms]
        ratios = self.expected_ratios if verdict.intervals else np.full(self.sizes.size, np.inf)
        long = [] if self.robust else long_tails(self.ground.coordinates, self.asked.design.terms)
        told = [LONG_TAILS.format(names=", ".join(long))] if long else []
        hidden = verdict.intervals and not np.any(ratios <= PLAIN_NOISE_ALONE.value)
        ratios = np.where(np.isin(terms, long), np.inf, ratios)
        return {
            "steps": self.budget.fit.steps,
            "shares": self.shares,
            "cuts": list(self.asked.cuts),
            "terms": terms,
            "privacy_to_sampling": [
                float(x) if x <= PLAIN_NOISE_ALONE.value else None for x in ratios
            ],
            "notes": [
                *profile_notes(self.own_profile),
                *self.strata_verdict.sentences,
                *told,
                *([NO_INTERVALS] if hidden else []),
            ],
        }

    @cached_property
    def strata_verdict(self) -> TrustVerdict:
        """What the events that are expected say of a fit with strata."""
        if len(self.asked.strata.labels) == 1:
            return trust.SOUND
        events = float(np.sum(self.expected_table.events))
        return trust.strata(self.newton(self.ground).table.expected_noise(events))

    @cached_property
    def expected_ratios(self) -> FloatArray:
        """(k,) by the public model on the follow-up that the profile leads to expect."""
        return expected_ratios(self.newton(self.ground), self.sizes, self.expected_table)

    @property
    def expected_table(self) -> RiskTable:
        """The follow-up that the profile leads to expect, of records in use."""
        return expected_risk(self.fine, self.facts, self.sizes.expected_n)

    @property
    def fine(self) -> FollowUp:
        """The follow-up on the whole grid."""
        asked = self.asked
        whole = FollowUp(asked.design, asked.time, asked.event, asked.strata, asked.cuts)
        return with_fine_grid(self.facts, whole)[0]

    def newton(self, ground: PersonsGround) -> PartialNewton:
        """The recipe on a public ground."""
        asked = self.asked
        columns = FollowUpColumns(
            asked.design,
            asked.time,
            asked.event,
            asked.start,
            ground.middle,
            asked.strata,
            asked.cuts[-1],
        )
        return PartialNewton(
            whole=ground.coding,
            coding=ground.slopes,
            coordinates=ground.coordinates,
            offset=ground.offsets,
            budget=self.budget,
            sizes=self.sizes,
            fine=self.fine,
            columns=columns,
            cuts=asked.cuts,
            radius=RADIUS if self.robust else None,
            strata=strata_means(ground.coding, ground.terms, asked.strata),
            bins=self.bins,
        )

    def run(self) -> Recipe:
        """Always a reply."""
        ground = self.ground
        if self.own_profile:
            own = self.own_profile
            facts = own.profiled((yield own.step))
            ground = persons_ground(self.asked, facts, masked=own.masked) or ground
        return (yield from self.fitted(ground))

    def fitted(self, ground: PersonsGround) -> Generator[Step, tuple[Released, ...], HazardFit]:
        """The recipe after the profile."""
        found = yield from self.newton(ground).fit()
        return partial_fit_result(self, found, ground)


def expected_risk(fine: FollowUp, facts: DatasetFacts, count: float) -> RiskTable:
    """Numbers of `count` records, whose times are the profile's and do not depend on the event."""
    ends = np.asarray(fine.cuts)
    column = declared(facts, fine.time)
    columns = facts.profile.columns if facts.profile else {}
    times = np.linspace(0, float(column.upper), 1000)
    if columns.get(fine.time) is not None:
        levels = (np.arange(1000) + 0.5) / 1000
        times = marginal(columns[fine.time], levels, (column.lower, column.upper))
    share, event = _EVENTS, columns.get(fine.event)
    if event is not None and event.counts is not None:
        share = float(event.counts[-1]) / max(float(sum(event.counts)), 1.0)
    share = float(np.clip(share, _LEAST_SHARE, 1 - _LEAST_SHARE))
    position = np.searchsorted(ends, times, side="left")
    leaving = np.bincount(position, minlength=len(ends) + 1) * count / len(times)
    at_risk = np.cumsum(leaving[::-1])[::-1][:-1]
    of = _expected_shares(fine, facts)
    events, at_risk = (np.outer(of, x).ravel() for x in (share * leaving[:-1], at_risk))
    axis = one_after_the_other(ends, fine.size)
    return RiskTable(axis, events, np.maximum(at_risk, 1.0), np.ones(len(axis)), fine.size)


def _expected_shares(fine: FollowUp, facts: DatasetFacts) -> FloatArray:
    """(G,) of the strata, by the profile where it counts them."""
    column = facts.profile.columns.get(fine.groups.column or "") if facts.profile else None
    if column is None or column.counts is None or len(column.counts) != fine.size:
        return np.full(fine.size, 1 / fine.size)
    counts = np.maximum(np.asarray(column.counts, dtype=np.float64), 0.0) + _TINY
    return np.asarray(counts / counts.sum())


def expected_ratios(newton: PartialNewton, sizes: Sizes, table: RiskTable) -> FloatArray:
    """(k,) privacy over sampling standard errors of the slopes, at β = 0."""
    k, count = sizes.size, sizes.expected_n
    start = unwhitened(newton.coordinates, _WIDE * newton.whole.size)
    whitening = slopes_whitening(start, k, newton.strata, table.shares)
    model = PersonsModel(whitening, UNBOUNDED, newton.offset, 1.0, table, count)
    theta = np.zeros(k)
    score = model.score_at(theta)
    J = model.curvature(score, theta, np.zeros((k, k)))
    root = power(J, -0.5, 1e-6)
    lengths = np.linalg.norm(model.persons(theta, score).scores @ root, axis=1)
    budget, rank = newton.budget.fit, newton.budget.rank(sizes)
    shape = replace(score, lengths=lengths).expected_shape()
    shape, grid = replace(shape, count=count), LengthGrid(sqrt(k))
    tail = grid.part(budget.tail, sizes.unit_rows)
    if not grid.tells(shape.numbers(grid.edges)[0], tail, count, rank):
        return np.full(k, np.inf)
    cut = shape.cut(rank)
    rho = sum(budget.gradients[-WHOLE_STEPS:])
    noise = planned_sd(VectorSum(k, cut.length, rho, sizes.unit_rows)) / count
    leant = score.leaning(k, cut.beyond / count) * cut.excess
    taken = float(allowance_covariance(leant / count, np.eye(1))[0, 0])
    return np.full(k, sqrt(noise**2 + taken) * sqrt(count))


def plan_partial(
    facts: DatasetFacts, asked: Hazards, level: float, rho: int, *, robust: bool, bins: int = 0
) -> PartialPlan:
    """Plans at `rho` (RHO_UNITS) from public facts alone. bins: of time, of the test of
    proportional hazards; 0 without it.
    """
    ground, own = planned_ground(
        facts, asked.whole, rho, lambda known, masked: persons_ground(asked, known, masked=masked)
    )
    k, m = len(asked.design.terms), facts.schema.unit.max_rows
    if own is None and (rows := draw_public_rows(asked.whole, facts)) is not None:
        refuse_constant(asked.design, facts.profile, rows.X[:, 1 : k + 1])
    sizes = Sizes(k, _WIDE * k, facts.n, facts.n * ground.share, m)
    left = rho - (own.rho if own else 0)
    masked, late = asked.design.masked, asked.start is not None
    budget = plan_partial_budget(
        sizes,
        left,
        masked=masked,
        late=late,
        beside=ground.coding.size - k,
        tested=bins > 0,
        robust=robust,
    )
    return PartialPlan(asked, facts, budget, ground, own, level, robust, bins)
