# SPDX-License-Identifier: Apache-2.0
"""A planned effect of a treatment, adjusted for covariates.

The textbook's estimators with a logit propensity e and a model m of the response, weights
normalised to 1 in each arm (so that stabilised weights give the same):

    ipw    Σ Aw₁y/ΣAw₁ − Σ(1 − A)w₀y/Σ(1 − A)w₀
    aipw   Σg(m₁ − m₀)/Σg + Σ Aw₁(y − m₁)/ΣAw₁ − Σ(1 − A)w₀(y − m₀)/Σ(1 − A)w₀
    gcomp  Σg(m₁ − m₀)/Σg

Steps, each a sum over records at coefficients that are released before it:

1. *overlap*: numbers of records by arm and propensity;
2. *arms*: sums of weights and of weighted residuals, cut at 3 spreads, which only centre; and the
   covariates' sums, for the balance;
3. *lengths*: how many influences |ψ| (treatment_effect.records), derivatives of ψ by the
   coefficients, and residuals |y − m| are longer than a length; of the last the slope of a tail, by
   which intervals are declined (fitting.thresholds.BULK_INDEX);
4. *effect*: Σ min(|ψ|, C) sign ψ with its squares, C at a rank from the top of step 3, and Σ R∂ψ.

The effect is the centres' plus Σψ/n: a Newton step of ratios of sums, exact but for products of two
errors of step 2, which are counted. Its variance is

    (Σψ²/n − ψ̄²)/n + noise² + ‖R Σ∂ψ/n‖² + (allowance for the cut)² + (products)².

The third term is what the errors of the released coefficients do to the effect, to first order: of
γ that of its privacy noise, of β that of sampling and noise. (RᵀR is their covariance; the noise of
ΣR∂ψ is subtracted, and the term is at least 0.) Sampling errors of γ are left out, as in robust
standard errors of weighted regressions: they make the effect of a correct propensity model more
precise (Robins, Mark & Newey 1992; Lunceford & Davidian 2004), so that intervals are a little too
long. Of `aipw` both derivatives are 0 where both models are right (Robins, Rotnitzky & Zhao 1994).

*Privacy* (unconditional; neighbours replace one unit of ≤ m rows). Every contribution is a function
of one record, of public numbers and of earlier releases, bounded by the primitive that adds it:

    overlap      one of 2B cells              CountSum       Δ = √2 m
    arms         ‖v‖ ≤ 1.5 (gcomp: .71)       VectorSum      Δ = 3 m (1.42 m)
    balance      ‖v‖ ≤ √k + 2                 VectorSum      Δ = (2√k + 4)m
    lengths      one position on each grid    RunningCounts  (mechanisms.running_counts)
    effect       |ψ/C| cut to 1, its square   PowerSum       the diameter of (t, 1.4t²)
    derivatives  ‖R∂ψ‖ ≤ L                    VectorSum      Δ = 2L m

C and L are post-processing of step 3. Models that are fitted within the question come first
(fitting.fit_plan). The ρ of all parts add up under adaptive composition of zCDP; all else is
post-processing. tests/privacy/test_treatment_effect_privacy.py attains each bound.

Sources: Robins, Rotnitzky & Zhao (1994); Hirano, Imbens & Ridder (2003); Li, Morgan & Zaslavsky
(2018); Dwork & Smith (2009).
"""

from collections.abc import Generator, Mapping
from dataclasses import astuple, dataclass, replace
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.steps import (
    CountSum,
    Part,
    PowerSum,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.row_tail import LengthGrid, RowCut, chosen_cut
from reticent_server.kinds.treatment_effect.estimate import (
    EffectSums,
    Found,
    TreatmentEffectResult,
    effect_result,
)
from reticent_server.kinds.treatment_effect.nuisance import Nuisance, NuisanceSource
from reticent_server.kinds.treatment_effect.overlap import (
    BINS,
    PropensityHistogram,
    histogram,
    public_edges,
)
from reticent_server.kinds.treatment_effect.records import (
    AdjustedRecords,
    ArmsMap,
    EffectMap,
    Influence,
    InfluenceLengthsMap,
    OverlapMap,
)
from reticent_server.mechanisms import noisy_sum

SQUARE = 1.4  # of t²: the largest that costs nothing beside t (kinds.mean.plan)
POWERS = ((0.0, 1.0), (0.0, 0.0, SQUARE))
ARMS_CLIP, MODEL_CLIP = 1.5, 0.71  # of (g/2, gδ/2, w, wρ), 1.6 at most; of the first two alone
_BALANCE_CLIP = 2.0  # of (z, wz), beyond the √k that is typical of standardised covariates
# of what the models leave of ρ; a third more or less of any moves widths by less than 5 %
_OVERLAP, _ARMS, _BALANCE, _DERIVATIVES = 0.06, 0.12, 0.1, 0.08
_LENGTHS, _SHORT, _RESIDUALS = 0.06, 0.02, 0.04
RANK = 2.0  # records beyond the cut, in cuts of the sum's noise
_CUT_DERIVATIVES = 0.03  # of the records: they tell a variance, which noise hurts more than cuts
_LEAST_RANK = 0.05  # of a record: without noise nothing is cut
_UNIT = 0.5  # of a spread: where the grid of lengths begins is a fourth of it
_RECORD_NANOSECONDS = 400  # of a record and covariate in one pass; measured 100
_TYPICAL = 4.0  # mean square of a weight of two even arms
_LONG = 3.0  # cuts are about so many standard deviations of ψ


@dataclass(frozen=True, slots=True)
class Shares:
    """ρ of each part, in RHO_UNITS; 0 for what is not released."""

    overlap: int
    arms: int
    balance: int
    lengths: int
    short: int
    residuals: int
    derivatives: int
    effect: int

    @property
    def rho(self) -> int:
        """What all parts cost."""
        return sum(astuple(self))


@dataclass(frozen=True, slots=True)
class TreatmentEffectPlan(Planned):
    """A planned effect. records: without the models that are released before. locations: (k, 2)
    public centres and scales of the covariates; None: no balance. known: whether the response's
    spread is of a profile; skewed: whether that shows it to be skewed.
    """

    deadline_shares: ClassVar = (0.17, 0.07)

    records: AdjustedRecords
    propensity: NuisanceSource | None
    outcome: NuisanceSource | None
    shares: Shares
    locations: tuple[tuple[float, float], ...] | None
    known: bool
    skewed: bool
    estimator: str
    estimand: str
    level: float
    names: tuple[str, ...]
    unit_rows: int
    n: int

    @property
    def sources(self) -> tuple[NuisanceSource, ...]:
        """Propensity and outcome, of those that the estimator fits."""
        return tuple(each for each in (self.propensity, self.outcome) if each is not None)

    @property
    def fits(self) -> tuple[Planned, ...]:
        """The models that are fitted within the question."""
        return tuple(plan for source in self.sources for plan in source.plans)

    @property
    def outline(self) -> Outline:
        fits = self.fits
        passes = 3 + (self.propensity is not None)
        row = _RECORD_NANOSECONDS * (len(self.names) + 2) * passes
        return Outline(
            columns=self.records.design.columns,
            rho=self.shares.rho + sum(plan.rho for plan in fits),
            mechanism="discrete Gaussian sums of influences cut at a rank",
            reference="Robins, Rotnitzky & Zhao (1994); Li, Morgan & Zaslavsky (2018); Dwork & "
            "Smith (2009)",
            passes=passes + sum(plan.passes for plan in fits),
            column_ms=ceil(self.n * row / 10**6) + sum(plan.column_ms for plan in fits),
            steady=all(plan.steady for plan in fits),
            gaussian_counts=self._counts,
            selections=sum((plan.selections for plan in fits), start=()),
            answers=ANSWERS[self.estimator],
        )

    @property
    def _counts(self) -> tuple[CountSum, ...] | None:
        every = [plan.gaussian_counts for plan in self.fits]
        known = [counts for counts in every if counts is not None]
        own = (self._overlap_part,) if self.shares.overlap else ()
        return (*sum(known, start=()), *own) if len(known) == len(every) else None

    @property
    def _overlap_part(self) -> CountSum:
        return CountSum(2 * BINS, self.shares.overlap, self.unit_rows)

    @property
    def _effect_part(self) -> PowerSum:
        return PowerSum(POWERS, self.shares.effect, self.unit_rows)

    @property
    def rank(self) -> float:
        """How many records the cut leaves beyond it."""
        return max(RANK * noisy_sum.noise_sd(self._effect_part), _LEAST_RANK)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """For two arms of the same size and an uninformative covariate: the standard error's
        part of noise, in spreads of the response where no profile has its units.
        """
        return {
            "privacy_standard_error": self._expected_noise,
            "records_beyond_the_cut": self.rank,
            "models_share": sum(plan.rho for plan in self.fits) / max(self.rho, 1),
        }

    @property
    def _expected_noise(self) -> float:
        cut = _LONG * sqrt(_TYPICAL) * self.records.spread
        return noisy_sum.noise_sd(self._effect_part) * cut / self.n

    @property
    def precision(self) -> ForecastPrecision:
        sampling = sqrt(_TYPICAL / self.n) * self.records.spread if self.known else None
        return single("effect", self._expected_noise, sampling)

    def run(self) -> Recipe:
        """1. The models, where they are fitted. 2. Overlap. 3. Arms. 4. Lengths. 5. The effect."""
        records = yield from self._modelled()
        seen = None
        if self.shares.overlap:
            edges = public_edges(records.trim)
            (counts,) = yield SumStep("overlap", (self._overlap_part,), OverlapMap(records, edges))
            seen = histogram(counts, edges)
        found = yield from self._arms(records, seen)
        influence = Influence(records, found.centres)
        cut, longest = yield from measured_lengths(self, influence)
        parts = (self._effect_part, self._derivatives(records, longest))
        sums, derivatives = yield SumStep("effect", parts, EffectMap(influence, cut.length))
        return self._result(found, EffectSums(sums, derivatives, cut, SQUARE))

    def _modelled(self) -> Generator[Step, tuple[Released, ...], AdjustedRecords]:
        propensity = outcome = None
        if self.propensity is not None:
            propensity = yield from self.propensity.released()
        if self.outcome is not None:
            outcome = yield from self.outcome.released()
        return replace(self.records, propensity=propensity, outcome=outcome)

    def _arms(
        self, records: AdjustedRecords, seen: PropensityHistogram | None
    ) -> Generator[Step, tuple[Released, ...], Found]:
        largest = 1.0 if seen is None else seen.largest(records.target)
        clip = MODEL_CLIP if seen is None else ARMS_CLIP
        parts: list[Part] = [VectorSum(6, clip, self.shares.arms, self.unit_rows)]
        if self.locations is not None:
            k = len(self.locations)
            clip = sqrt(k) + _BALANCE_CLIP
            parts.append(VectorSum(4 * k, clip, self.shares.balance, self.unit_rows))
        where = None if self.locations is None else np.array(self.locations)
        step = SumStep("arms", tuple(parts), ArmsMap(records, largest, where))
        arms, *balance = yield step
        return Found.of(arms, balance, seen, largest, records, self.n)

    def _derivatives(self, records: AdjustedRecords, longest: float) -> VectorSum:
        models: tuple[Nuisance | None, ...] = (records.propensity, records.outcome)
        size = sum(len(each.root) for each in models if each is not None)
        return VectorSum(size, longest, self.shares.derivatives, self.unit_rows)

    def _result(self, found: Found, sums: EffectSums) -> TreatmentEffectResult:
        return effect_result(
            found, sums, estimand=self.estimand, estimator=self.estimator, level=self.level,
            names=self.names, n=self.n, skewed=self.skewed,
        )  # fmt: skip


def measured_lengths(
    plan: TreatmentEffectPlan, influence: Influence
) -> Generator[Step, tuple[Released, ...], tuple[RowCut, float]]:
    """The cut of the influences, and the longest derivative that is not cut."""
    unit = _UNIT * plan.records.spread * (1.0 if plan.known else 1 / 8)
    short = unit * sqrt(max(len(plan.names), 1) / plan.n)
    effects, derivatives = LengthGrid(unit), LengthGrid(short)
    m, shares = plan.unit_rows, plan.shares
    parts = [effects.part(shares.lengths, m), derivatives.part(shares.short, m)]
    if shares.residuals:
        parts.append(effects.part(shares.residuals, m))
    step = SumStep("lengths", tuple(parts), InfluenceLengthsMap(influence, effects, derivatives))
    first, second, *residuals = yield step
    cut = chosen_cut(effects, first, plan.n, plan.rank).of_likelihood
    if residuals:  # the slope before a cut tells tails of residuals, not of their products
        cut = replace(cut, bulk=chosen_cut(effects, residuals[0], plan.n, plan.rank).bulk)
    least = max(plan.rank, _CUT_DERIVATIVES * plan.n)
    return cut, chosen_cut(derivatives, second, plan.n, least).length


ANSWERS = {
    "ipw": "Inverse-probability weighting, weights normalised in each arm",
    "aipw": "Augmented inverse-probability weighting (doubly robust)",
    "gcomp": "G-computation (standardisation by an outcome model)",
}
"""The reply's first line, by estimator."""


def shares_of(rho: int, *, weighted: bool, balanced: bool) -> Shares:
    """Splits `rho` (RHO_UNITS) over the parts of the effect's own steps."""
    overlap, residuals = (int(share * rho) * weighted for share in (_OVERLAP, _RESIDUALS))
    balance = int(_BALANCE * rho) * balanced
    arms, lengths, short, derivatives = (
        int(share * rho) for share in (_ARMS, _LENGTHS, _SHORT, _DERIVATIVES)
    )
    left = rho - overlap - balance - arms - lengths - short - residuals - derivatives
    return Shares(overlap, arms, balance, lengths, short, residuals, derivatives, left)
