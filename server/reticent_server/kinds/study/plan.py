# SPDX-License-Identifier: Apache-2.0
"""A planned study: shares of ρ and a forecast from public facts, and the reply from its releases.

Proof of privacy: kinds.study.recipe.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, ClassVar

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.steps import SELECTION_NANOSECONDS, CountSum
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.own_profile import (
    OwnProfile,
    counts_of,
    planned_ground,
    selections_of,
)
from reticent_server.fitting.person_scores import Lengths
from reticent_server.kinds.shared.answers import LEAST_SQUARES
from reticent_server.kinds.study.declared import DeclaredFormula
from reticent_server.kinds.study.forecast import StudyForecast
from reticent_server.kinds.study.ground import (
    StudyGround,
    StudyQuestion,
    ground_of,
    person_rows_of,
)
from reticent_server.kinds.study.main import SCORE_LIMIT, formula_of
from reticent_server.kinds.study.recipe import Sampling, StudyBudget, typical_length
from reticent_server.kinds.study.reply import StudyReply
from reticent_server.kinds.study.result import MainFit

_ROUNDS = (
    1.0,
    2.0,
)  # squared radius for each column: first the shape, then the lengths and where tails lie
_PRECISION = (0.15, 0.10)  # of a round: noise's norm over records, enough for whitening
_MOST, _LEAST = (0.10, 0.20), (0.02, 0.04)  # shares of ρ of a round (simulations)
_LENGTHS, _COUNT = 0.06, 0.02  # shares of ρ
_MAIN = (0.05, 0.20)  # of what is left after these, the least and the most
# C² of persons' scores for each coefficient and row, where it is planned: 4 to 8 in simulations
_PERSON_SCORE = 6.0
_SCORE_LENGTHS = 0.03  # share of ρ, as in a regression of persons
_MEAT = 0.20  # of the meat: noise's norm over records; a standard error is then known to 3 %
_WIDEST_COLUMN = 1e120  # of a declared bound: products of two stay far below 10³⁰⁸
# nanoseconds of one product of two rows of a person, for lengths and for their integers (measured
# 3)
_PRODUCT_OF_PERSONS = 6.0
_MULTIPLICATION = 0.5  # nanoseconds of one product in a Gram matrix (measured .2)


@dataclass(frozen=True, slots=True, eq=False)
class StudyPlan(Planned):
    """A planned study. own_profile: released first where no profile covers the columns; it replaces
    `ground`.
    """

    deadline_shares: ClassVar = (0.17, 0.29)

    facts: DatasetFacts
    question: StudyQuestion
    ground: StudyGround
    shares: StudyBudget
    own_profile: OwnProfile | None

    @property
    def outline(self) -> Outline:
        return Outline(
            answers=LEAST_SQUARES,
            columns=self.question.design.columns,
            rho=self.shares.rho + (self.own_profile.rho if self.own_profile else 0),
            mechanism="noisy second moments in whitened coordinates",
            reference="Canonne, Kamath & Steinke (2020); Dwork, Talwar, Thakurta & Zhang (2014)",
            passes=self._passes,
            column_ms=self._column_ms,
            draws=self._draws,
            of_persons=True,
            gaussian_counts=self._gaussian_counts,
            selections=selections_of(self.own_profile),
        )

    @property
    def _gaussian_counts(self) -> tuple[CountSum, ...]:
        counts = (*counts_of(self.own_profile), *self._sampling(self.ground).counts)
        if not self.shares.score_lengths:
            return counts
        return (*counts, Lengths(1.0).part(self.shares.score_lengths, self.person_rows))

    @property
    def person_rows(self) -> int:
        """m where a person's rows count together, else 1."""
        return person_rows_of(self.facts)

    @property
    def records(self) -> int:
        """The public number of units: persons, or rows."""
        return self.facts.n // self.person_rows

    @property
    def _passes(self) -> int:
        further = (self.own_profile is not None) + (self.shares.scores > 0)
        further += self.shares.score_lengths > 0
        return len(self.shares.rounds) + 2 + further

    @property
    def _draws(self) -> int:
        return self.own_profile.draws if self.own_profile else 0

    @property
    def _column_ms(self) -> int:
        """Planned time of the products, and of an own profile's draws."""
        products = self.facts.n * self._passes * (self._size * self.question.groups.count) ** 2
        pairs = self.facts.n * self._passes * self._size * min(self.person_rows, self._size)
        lengths = pairs * _PRODUCT_OF_PERSONS * (self.person_rows > 1)
        sums = products * _MULTIPLICATION + lengths
        return int(self._draws * SELECTION_NANOSECONDS + sums) // 10**6

    @property
    def _size(self) -> int:
        return self.ground.coding.size

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the first variable on the others."""
        return from_ratios(self.forecast["terms"], self.forecast["privacy_to_sampling"])

    @property
    def forecast(self) -> Mapping[str, Any]:
        """What is expected of the first variable on the others, and of any correlation
        (study.forecast)."""
        ground, known = self.ground, self.own_profile is None
        planned = StudyForecast(self.question, ground, self._sampling(ground), self.records, known)
        return planned.shown(self._shown_shares)

    @property
    def _shown_shares(self) -> dict[str, float]:
        s = self.shares
        amounts = {
            "profile": self.own_profile.rho if self.own_profile else 0,
            "whitening": sum(rho for rho, _ in s.rounds),
            "records_in_use": s.count,
            "lengths": s.lengths,
            "moments": s.moments,
            "scores": s.scores + s.score_lengths,
        }
        return {name: amount / self.rho for name, amount in amounts.items()}

    def _sampling(self, ground: StudyGround) -> Sampling:
        return Sampling(
            coding=ground.coding,
            coordinates=ground.coordinates,
            groups=self.question.groups,
            shares=self.shares,
            n=self.facts.n,
            unit_rows=self.facts.schema.unit.max_rows,
            person_rows=self.person_rows,
        )

    def run(self) -> Recipe:
        """The recipe; it always replies."""
        ground = self.ground
        if self.own_profile:
            own = self.own_profile
            facts = own.profiled((yield own.step))
            ground = ground_of(self.question.design, facts, masked=own.masked) or ground
        sampling, known = self._sampling(ground), self.own_profile is None
        by_group = yield from sampling.sampled()
        reply = StudyReply(self.question, ground, sampling, self.records, self._shown_shares, known)
        lost = reply.lost(by_group)
        fits: Sequence[MainFit | None] = [None] * len(by_group)
        if self.question.main:
            formula = formula_of(*self.question.main, ground.coding)
            declared = DeclaredFormula(formula, self.question, sampling, self.records)
            fits = yield from declared.fits(by_group, lost)
        return reply.result(by_group, fits, lost)


def plan_study(facts: DatasetFacts, question: StudyQuestion, rho: int) -> StudyPlan:
    """Plans a study at `rho` (RHO_UNITS) from public facts alone; InvalidQuery for a formula over
    other columns.
    """
    ends = (abs(end) for term in question.design.terms for end in (term.lower, term.upper))
    if any(_WIDEST_COLUMN < end < inf for end in ends):
        raise InvalidQuery("A variable's declared bounds are too wide for moments in its units.")
    ground, own = planned_ground(
        facts,
        question.design,
        rho,
        lambda known, masked: ground_of(question.design, known, masked=masked),
    )
    if question.main:
        formula_of(*question.main, ground.coding)
    some = question.design.masked or question.groups.column is not None
    left = rho - (own.rho if own else 0)
    records = facts.n * ground.share / question.groups.count
    q, m = ground.coding.size, person_rows_of(facts)
    length = typical_length(q, m)
    noise = sqrt(2) * length * (facts.schema.unit.max_rows // m) / records
    rounds = _planned_rounds(left, noise * sqrt(2 * q))
    limit = SCORE_LIMIT if m == 1 else _PERSON_SCORE * m * q / length
    scores = question.main is not None and limit * noise * sqrt(2 * q)
    shares = _planned_shares(left, rounds, counted=some, scores=scores, persons=m > 1)
    return StudyPlan(facts, question, ground, shares, own)


def _planned_rounds(rho: int, norm: float) -> tuple[tuple[int, float], ...]:
    """(ρ, squared radius for each column) of the rounds: no more than gives their precision. norm:
    of the noise, relative to the records, at a radius of 1 for each column and 2ρ = 1.
    """
    planned = []
    for factor, nu, most, least in zip(_ROUNDS, _PRECISION, _MOST, _LEAST, strict=True):
        wanted = (factor * norm / nu) ** 2 / (2 * rho / RHO_UNITS)
        planned.append((int(min(max(wanted, least), most) * rho), factor))
    return tuple(planned)


def _planned_shares(
    rho: int,
    rounds: tuple[tuple[int, float], ...],
    *,
    counted: bool,
    scores: float,
    persons: bool,
) -> StudyBudget:
    """scores: the norm of the meat's noise relative to the records, at 2ρ = 1; 0 without a declared
    formula.
    """
    count, lengths = int(_COUNT * rho) * counted, int(_LENGTHS * rho)
    by_score = int(_SCORE_LENGTHS * rho) if persons and scores else 0
    left = rho - sum(amount for amount, _ in rounds) - count - lengths - by_score
    wanted = (scores / _MEAT) ** 2 / (2 * left / RHO_UNITS)
    meat = int(min(max(wanted, _MAIN[0]), _MAIN[1]) * left) if scores else 0
    return StudyBudget(rounds, count, lengths, left - meat, meat, by_score)
