# SPDX-License-Identifier: Apache-2.0
"""A planned study: shares of ρ and a forecast from public facts, and the reply from its releases.

Proof of privacy: kinds.study.recipe.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.steps import (
    SELECTION_NANOSECONDS,
    CountSum,
    FloatArray,
    GramSum,
    Released,
    Step,
    SumStep,
)
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.coding import TermCoding, code_terms
from reticent_server.fitting.heavy_terms import lost_shares, skewness
from reticent_server.fitting.maps import invertible_on_lattice
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.own_profile import (
    NO_PROFILE,
    OwnProfile,
    counts_of,
    planned_ground,
    selections_of,
)
from reticent_server.fitting.person_scores import Lengths
from reticent_server.fitting.public.coordinates import Coordinates, public_coordinates
from reticent_server.fitting.public.rows import draw_public_rows
from reticent_server.fitting.trust.thresholds import CLIPPING_TOLD
from reticent_server.kinds.shared.answers import LEAST_SQUARES
from reticent_server.kinds.study.main import (
    SCORE_LIMIT,
    Formula,
    GroupFit,
    before_meat,
    formula_of,
    main_fit,
    meat,
)
from reticent_server.kinds.study.maps import RecordGroups, ScoreLengthsMap, StudyScoresMap
from reticent_server.kinds.study.moments import Moments
from reticent_server.kinds.study.persons import (
    design_effect,
    persons_meat,
    score_clusters,
    score_lengths,
    stretch_of,
)
from reticent_server.kinds.study.radius import choose_radius, counted, widest_radius
from reticent_server.kinds.study.recipe import (
    Sampled,
    Sampling,
    StudyBudget,
    typical_length,
)
from reticent_server.kinds.study.result import (
    Clipped,
    GroupResult,
    MainFit,
    Narrow,
    Noise,
    StudyResult,
)
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.person_grams import gram_lengths

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
_FARTHEST = 1e100  # of a standardised column: its square stays finite
_WIDEST_COLUMN = 1e120  # of a declared bound: products of two stay far below 10³⁰⁸
# nanoseconds of one product of two rows of a person, for lengths and for their integers (measured
# 3)
_PRODUCT_OF_PERSONS = 6.0
_MULTIPLICATION = 0.5  # nanoseconds of one product in a Gram matrix (measured .2)


@dataclass(frozen=True, slots=True)
class StudyQuestion:
    """What is asked: the columns by variable, groups and their levels' names, the declared formula,
    the level of its intervals.
    """

    design: Design
    variables: Mapping[str, Sequence[str]]
    groups: RecordGroups
    levels: tuple[str, ...]
    main: tuple[str, Design] | None
    level: float


@dataclass(frozen=True, slots=True, eq=False)
class StudyGround:
    """What a study stands on, all public: coding, coordinates, the share of records in use."""

    coding: TermCoding
    coordinates: Coordinates
    share: float


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
        """Of the first variable on the others."""
        return from_ratios(self.forecast["terms"], self.forecast["privacy_to_sampling"])

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Of the first variable on the others: privacy over sampling standard error by term, null
        where the noise is expected to leave no interval; of any correlation: half of its 95 %
        interval near 0. Without a profile tails are taken to be heavy.
        """
        q, n = self._size, self.facts.n * self.ground.share / self.question.groups.count
        sampling = self._sampling(self.ground)
        unit, length, m = sampling.unit_noise, sampling.length, self.person_rows
        bins = self._expected_lengths(length)
        sd = planned_sd(replace(sampling.by_length, bins=len(bins)))
        known = self.own_profile is None
        squared = (
            choose_radius(bins, sd, q, n, unit, length, sampling.trace).squared
            if known
            else widest_radius(q, n, unit, length)
        )
        noise = squared * unit
        half = float(ndtri(0.975)) * sqrt(m / n + noise**2 / (2 * n**2))
        ratios = self._ratios(noise, n, squared)
        heavy = self._heavy(self.ground, squared)
        names, head = self.question.design.names, int(not self.question.design.deviations)
        return {
            "response": names[1] if q > 1 else names[0],
            "terms": [*names[:head], *names[2:]],
            "privacy_to_sampling": ratios,
            "correlation_half_width": min(half, 1.0),
            "shares": self._shown_shares,
            "notes": [*self._notes(ratios), *heavy],
        }

    def _expected_lengths(self, length: float) -> FloatArray:
        """Numbers by length, of public rows, whose columns are independent; persons are made of m
        of them.
        """
        U, m = self.ground.coordinates.rows, self.person_rows
        U = U[: len(U) // m * m] if len(U) >= m else np.resize(U, (m, U.shape[1]))
        lengths = gram_lengths(np.ascontiguousarray(U.T), m) if m > 1 else np.sum(U**2, axis=1)
        share = 1.0 if m > 1 else self.ground.share
        return counted(lengths, length) * (
            self.records * share / self.question.groups.count / len(lengths)
        )

    def _ratios(self, noise: float, n: float, squared: float) -> list[float | None]:
        """(q − 1,) from public rows, whose columns are independent; the rows of a person count as a
        study's formulas count them, so that m rows may have nothing of their own.
        """
        q, frame = self._size, self.ground.coordinates
        U = frame.rows
        w = mallows_weights(np.sum(U**2, axis=1), squared)
        inverse: FloatArray = np.asarray(
            np.linalg.inv(invertible_on_lattice(frame.transform)), np.float64
        )
        expected = inverse @ ((U * w[:, None]).T @ U) @ inverse.T * (n / len(U))
        rows = np.eye(q)
        X = np.delete(rows, 1, axis=0) if q > 1 else rows
        X = X[1:] if self.question.design.deviations else X
        fit = Moments(expected, inverse.T, noise).least_squares(rows[min(1, q - 1)], X)
        if not fit.open:
            return [None] * len(X)
        sampling = np.maximum(self.person_rows * np.diag(fit.sampling), np.finfo(float).tiny)
        return [float(x) for x in np.sqrt(np.diag(fit.privacy) / sampling)]

    def _notes(self, ratios: list[float | None]) -> list[str]:
        notes = [NO_PROFILE] if self.own_profile else []
        if None in ratios:
            notes.append(
                "A regression of the first variable on all others is forecast to have no "
                "intervals at this "
                "epsilon; formulas over fewer of the columns may. Fewer variables leave more for "
                "each."
            )
        return notes

    def _heavy(self, ground: StudyGround, radius_squared: float) -> list[str]:
        """What to say of terms whose tails a radius cuts."""
        lost = lost_shares(ground.coding, ground.coordinates, radius_squared)
        names = trust.heavy(lost)
        said = (
            f"Much of the variance of {', '.join(names)} comes from few records, which the "
            "radius downweights: "
            "least squares of all records may differ. A logarithm, or an indicator of the few, "
            "is about all of them."
        )
        return [said] if names else []

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
        by_group = yield from self._sampling(ground).sampled()
        fits: Sequence[MainFit | None] = [None] * len(by_group)
        sampling, m = self._sampling(ground), self.person_rows
        reach, inner = m * column_reach(ground.coding), sampling.inner
        far = skewness(ground.coordinates)
        skewed = trust.skewed(far) & (self.own_profile is None)
        lost = [
            sampled.narrow.tails(
                sampled.moments.sums,
                sampled.moments.sd * np.diag(sampled.moments.overlap),
                reach / sampled.radius.squared,
                sampled.radius.squared / inner,
                skewed,
                *self._usual(sampled, far, sampled.radius.squared / inner),
            )
            for sampled in by_group
        ]
        if self.question.main:
            formula = formula_of(*self.question.main, ground.coding)
            fits = yield from self._main(formula, ground.coding, by_group, lost)
        groups = [
            replace(
                _group(self.records, ground.coding, sampled, fit, self._effect(sampled)),
                lost=shares.tolist(),
            )
            for sampled, fit, shares in zip(by_group, fits, lost, strict=True)
        ]
        least = min(sampled.radius.squared for sampled in by_group)
        said = [*self._heavy(ground, least), *_beyond(by_group, ground.coding.size)]
        result = self._result(ground.coding, groups, said)
        return result if m == 1 else self._with_persons(result, by_group[0])

    def _usual(self, sampled: Sampled, far: FloatArray, widening: float) -> tuple[FloatArray, ...]:
        """Of persons what columns without a tail have between the radii. far: (q,) their skewness;
        nothing is known of it without a profile.
        """
        if sampled.persons is None:
            return ()
        known = far if self.own_profile is None else np.full(len(far), np.inf)
        moments = sampled.moments
        return (sampled.narrow.usual(moments.sums, moments.overlap, known, widening),)

    def _stretch(self, sampled: Sampled) -> float:
        """By what mean squares of residuals are multiplied to be those of errors: of deviations
        more than 1.
        """
        if sampled.persons is None or not self.question.design.deviations:
            return 1.0
        return stretch_of(sampled.records, sampled.persons)

    def _effect(self, sampled: Sampled) -> float:
        """Of the design, on the sampling variances of formulas that were not declared."""
        return float(design_effect(self.person_rows, self._stretch(sampled)))

    def _with_persons(self, result: StudyResult, sampled: Sampled) -> StudyResult:
        deviations = self.question.design.deviations
        return replace(
            result,
            persons=sampled.persons,
            persons_standard_error=sampled.persons_sd,
            design_effect=self._effect(sampled),
            effects="person" if deviations else None,
            stretch=self._stretch(sampled) if deviations else None,
        )

    def _main(
        self,
        formula: Formula,
        coding: TermCoding,
        by_group: Sequence[Sampled],
        lost: Sequence[FloatArray],
    ) -> Generator[Step, tuple[Released, ...], list[MainFit]]:
        fitted = [before_meat(formula, sampled.moments, sampled.narrow) for sampled in by_group]
        if self.person_rows > 1:
            return [(yield from self._of_persons(formula, coding, by_group[0], fitted[0], lost[0]))]
        groups = self.question.groups
        part = formula.part(groups.count, self.shares.scores, self.facts.schema.unit.max_rows)
        frames = tuple(sampled.frame for sampled in by_group)
        rows = StudyScoresMap(
            coding, groups, frames, tuple(f.scores for f in fitted), formula.limit
        )
        (released,) = yield SumStep("scores", (part,), rows)
        names, level = self.question.design.names, self.question.level
        return [
            main_fit(
                replace(f, bared=formula.bared(names, lost[g])),
                formula,
                meat(formula, released, g, f, formula.limit**2),
                level,
                self.facts.n,
            )
            for g, f in enumerate(fitted)
        ]

    def _of_persons(
        self,
        formula: Formula,
        coding: TermCoding,
        sampled: Sampled,
        fitted: GroupFit,
        lost: FloatArray,
    ) -> Generator[Step, tuple[Released, ...], MainFit]:
        """The declared formula with errors by person (persons)."""
        m, lengths = self.person_rows, score_lengths(formula, self.person_rows)
        scores = StudyScoresMap(
            coding, self.question.groups, (sampled.frame,), (fitted.scores,), 1.0
        )
        part = lengths.part(self.shares.score_lengths, m)
        (counts,) = yield SumStep("score lengths", (part,), ScoreLengthsMap(scores, lengths))
        clusters = score_clusters(lengths, counts)
        gram = GramSum(len(formula.X), 1.0, self.shares.scores, 1, person_rows=m)
        (released,) = yield SumStep("scores", (gram,), replace(scores, limit=clusters.clip))
        middle, freedom = persons_meat(formula, released, fitted, clusters)
        bared = formula.bared(self.question.design.names, lost)
        fitted = replace(fitted, bared=bared, freedom=freedom, stretch=self._stretch(sampled))
        return main_fit(fitted, formula, middle, self.question.level, self.records)

    def _result(
        self, coding: TermCoding, groups: Sequence[GroupResult], said: list[str]
    ) -> StudyResult:
        question, design = self.question, self.question.design
        common = StudyResult(
            terms=list(design.names),
            variables={text: list(names) for text, names in question.variables.items()},
            centres=coding.centres.tolist(),
            scales=coding.scales.tolist(),
            dummies=[False, *(term.dummy for term in design.terms)],
            n=self.records,
            shares=self._shown_shares,
            warnings=[*([NO_PROFILE] if self.own_profile else []), *said],
        )
        if question.groups.column is not None:
            return replace(common, groups=dict(zip(question.levels, groups, strict=True)))
        (only,) = groups
        return replace(
            common,
            moments=only.moments,
            noise=only.noise,
            narrow=only.narrow,
            clipped=only.clipped,
            radius=only.radius,
            lost=only.lost,
            main=only.main,
        )


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


def ground_of(design: Design, facts: DatasetFacts, *, masked: bool = True) -> StudyGround | None:
    """The public ground of a study's columns; None where no profile covers them."""
    rows = draw_public_rows(design, facts, masked=masked)
    if rows is None:
        return None
    coding = code_terms(design, rows)
    if design.deviations:  # they have mean 0, and the intercept only counts rows
        coding = replace(coding, locations=tuple(replace(x, centre=0.0) for x in coding.locations))
    return StudyGround(coding, public_coordinates(coding.standardised(rows.X)), rows.share)


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


def person_rows_of(facts: DatasetFacts) -> int:
    """m where a person's rows count together, else 1."""
    return 1 if facts.persons is None else facts.schema.unit.max_rows


def _beyond(groups: Sequence[Sampled], q: int) -> list[str]:
    """What to say where the released histogram shows tails that matter beyond a radius."""
    excess = max(sampled.radius.excess / sampled.records for sampled in groups)
    moved = max(sampled.radius.typical(q, sampled.records) for sampled in groups)
    said = (
        f"Heavy tails: about {excess / (excess + q):.0%} of the records' variation lies beyond "
        "the radius, which may move "
        f"coefficients by {moved:.1f} of their sampling errors (typically; single ones by "
        "several times that) from least "
        "squares of all records. The profile shows which columns have such tails."
    )
    return [said] if moved >= CLIPPING_TOLD.value else []


def _group(
    n: int, coding: TermCoding, sampled: Sampled, fit: MainFit | None, effect: float
) -> GroupResult:
    """A group's moments in the units of the terms: z = Dz̃, D = diag(b) + a eᵀ. effect: of the
    design, on sampling variances.
    """
    D = np.diag(coding.scales)
    D[1:, 0] = coding.centres[1:]
    moments, narrow = sampled.moments, sampled.narrow
    weight, sd = float(moments.sums[0, 0]), moments.sd * float(moments.overlap[0, 0])
    return GroupResult(
        moments=_symmetric(D @ moments.sums @ D.T / n).tolist(),
        noise=Noise(sd=moments.sd / n, root=(moments.root @ D.T).tolist()),
        narrow=Narrow(
            moments=_symmetric(D @ narrow.sums @ D.T / n).tolist(),
            noise=Noise(sd=narrow.sd / n, root=(narrow.root @ D.T).tolist()),
            ratio=narrow.ratio,
            typical=narrow.typical / sqrt(effect),
        ),
        clipped=Clipped(
            share=1 - weight / sampled.records,
            standard_error=sqrt(sd**2 + sampled.records_sd**2) / sampled.records,
            excess=sampled.radius.excess / sampled.records,
        ),
        radius=sampled.radius.squared,
        lost=[],
        main=fit,
    )


def column_reach(coding: TermCoding) -> FloatArray:
    """(q,) the largest square of each standardised column within its declared bounds; 0 for the
    intercept and dummies.
    """
    terms = coding.design.terms
    pairs = zip(terms, coding.centres[1:], strict=True)
    ends = np.array([0.0, *(max(abs(t.lower - c), abs(t.upper - c)) for t, c in pairs)])
    dummies = np.array([True, *(term.dummy for term in terms)])
    return np.where(dummies, 0.0, np.minimum(ends / coding.scales, _FARTHEST) ** 2)


def _symmetric(matrix: FloatArray) -> FloatArray:
    return np.asarray((matrix + matrix.T) / 2)
