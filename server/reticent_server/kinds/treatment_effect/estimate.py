# SPDX-License-Identifier: Apache-2.0
"""From released sums to an effect with its interval: post-processing.

Balance: of each covariate the treated's mean less the controls', over a standard deviation that
public facts give, before and after weighting. Its standard error is that of the privacy noise: it
is about these records.
"""

from dataclasses import dataclass
from math import hypot, sqrt
from typing import Annotated

import numpy as np
from annotated_types import Gt
from scipy.special import ndtr

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.normal import half_width
from reticent_server.fitting.results import OpenInterval, Share, Size
from reticent_server.fitting.row_tail import RowCut, leaning
from reticent_server.fitting.trust import clear, cut_decides
from reticent_server.fitting.trust.thresholds import (
    BEYOND_TRIM,
    IMBALANCED,
    INFLUENCE_INDEX,
    RESIDUAL_SLOPE,
    WEIGHTS_NOISE,
)
from reticent_server.kinds.treatment_effect.overlap import Overlap, PropensityHistogram
from reticent_server.kinds.treatment_effect.records import HALF, REACH, AdjustedRecords, Centres

FEW = (
    "An arm has too few records for its noise, so there is no interval: raise epsilon, or ask "
    "about a more common treatment."
)
POOR = (
    "Overlap is poor: {share:.0%} of the records have propensities beyond the trimming bounds, "
    "where hardly anybody of the other arm is like them, so there is no interval. Ask for "
    'estimand="overlap", for another estimand, or with `where` for records with both treatments.'
)
HEAVY = (
    "A few records with large weights or far-off responses decide the effect, so there is no "
    'interval: ask for estimand="overlap", a larger trim, a logarithm of the response, or a larger '
    "epsilon."
)
UNTOLD = (
    "Some coefficients of the {which} are below their noise: the adjustment is incomplete where "
    "they matter. Fit it with a larger epsilon, or with fewer covariates."
)
IMBALANCE = (
    "After weighting the arms still differ by more than {limit:g} standard deviations in {names}."
)
NO_BALANCE = "There is no balance table, as no profile has the spread of the covariates."


@dataclass(frozen=True, slots=True, kw_only=True)
class CovariateBalance:
    """Standardised mean differences of k covariates: before and after (k,), and the standard errors
    of their privacy noise (k,).
    """

    terms: list[str]
    before: list[float]
    before_standard_errors: list[Size]
    after: list[float]
    after_standard_errors: list[Size]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatmentEffectResult:
    """The effect of a treatment in the units of the response, or of its mean where that is a share.

    standard_error: of sampling, noise, the models' errors and the cut; privacy_standard_error: of
    the noise of this question's sums; models_standard_error: what the models' errors add;
    allowance: what the cut of the largest influences adds. estimand: whose effect, in words.
    numbers, effective_numbers: of controls and treated, the second (Σw)²/Σw². beyond: the share of
    records whose weights are cut at the trimming bounds. No interval: `warnings` say why."""

    effect: float
    standard_error: Size
    privacy_standard_error: Size
    models_standard_error: Size
    allowance: Size
    confidence_level: Share
    confidence_interval: OpenInterval
    p_value: Share | None
    estimand: str
    estimator: str
    warnings: list[str]
    n: int
    numbers: list[float] | None = None
    effective_numbers: list[float] | None = None
    beyond: float | None = None
    tail_index: Annotated[float, Gt(0)] | None = None
    overlap: Overlap | None = None
    balance: CovariateBalance | None = None


WORDS = {
    "ate": "the average effect on all records in use",
    "att": "the average effect on the treated",
    "atc": "the average effect on the controls",
    "overlap": "the average effect where both treatments are likely (weights e(1 − e))",
}
"""Whose effect, by estimand."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What is known before the last steps. products: the standard deviation of products of two
    errors of the first sums. relative: the largest noise of a sum of weights, relative to it.
    """

    centres: Centres
    records: AdjustedRecords
    products: float
    relative: float
    histogram: PropensityHistogram | None
    balance: FloatArray | None
    balance_sd: float
    sums: FloatArray
    largest: float

    @classmethod
    def of(
        cls,
        arms: Released,
        balance: list[Released],
        seen: PropensityHistogram | None,
        largest: float,
        records: AdjustedRecords,
        n: int,
    ) -> "Found":
        """From the released sums of an ArmsMap."""
        S, T = arms.values[::2], REACH * records.spread * arms.values[1::2]
        floor = np.maximum(S, max(2 * arms.sd, 1.0))
        r = np.clip(T / floor, -REACH * records.spread, REACH * records.spread)
        used = np.array([True, seen is not None, seen is not None])
        relative = np.where(used, arms.sd / floor, 0.0)
        errors = relative * np.hypot(REACH * records.spread, r)
        units = np.array([records.target.most / HALF, largest, largest])
        G, S1, S0 = (floor * units / n).tolist()
        return cls(
            centres=Centres(G, S1, S0, *r.tolist()),
            records=records,
            products=float(np.linalg.norm(relative * errors)),
            relative=float(relative.max()),
            histogram=seen,
            balance=balance[0].values if balance else None,
            balance_sd=balance[0].sd if balance else 0.0,
            sums=floor,
            largest=largest,
        )

    @property
    def start(self) -> float:
        """The effect by the first sums."""
        return self.centres.r + (
            self.centres.r1 - self.centres.r0 if self.histogram is not None else 0.0
        )


@dataclass(frozen=True, slots=True, eq=False)
class EffectSums:
    """The last step's releases: sums of ψ/C and its square times `square`, and of R∂ψ."""

    powers: Released
    derivatives: Released
    cut: RowCut
    square: float


def effect_result(
    found: Found,
    sums: EffectSums,
    *,
    estimand: str,
    estimator: str,
    level: float,
    names: tuple[str, ...],
    n: int,
    skewed: bool,
) -> TreatmentEffectResult:
    """What a reply says."""
    C = sums.cut.length
    mean, square = (C * sums.powers.values[0] / n, C**2 * sums.powers.values[1] / sums.square / n)
    effect = found.start + float(mean)
    variance = max(float(square - mean**2), 0.0)
    privacy = hypot(C * sums.powers.sd / n, found.products)
    models = models_error(sums.derivatives, n)
    rest = sqrt(variance / n + privacy**2 + models**2)
    allowance = leaning(1) * _excess(sums.cut, found) / n
    error = hypot(rest, allowance)
    balance, seen = _balance(found, names), found.histogram
    told = found.histogram is None or (sums.cut.told and steep(sums.cut, skewed=skewed))
    refused = _refusals(found, allowance, rest, told=told)
    return TreatmentEffectResult(
        effect=effect,
        standard_error=error,
        privacy_standard_error=privacy,
        models_standard_error=models,
        allowance=allowance,
        confidence_level=level,
        confidence_interval=(None, None)
        if refused
        else (effect - half_width(error, level), effect + half_width(error, level)),
        p_value=None if refused else float(2 * ndtr(-abs(effect) / max(error, 1e-300))),
        estimand=WORDS[estimand],
        estimator=estimator,
        warnings=[*refused, *_warnings(found, balance)],
        n=n,
        tail_index=sums.cut.alpha if sums.cut.alpha > 0 else None,
        numbers=None if seen is None else list(seen.numbers),
        effective_numbers=None if seen is None else list(seen.effective(found.records.target)),
        beyond=None if seen is None else seen.beyond(found.records.target)[0],
        overlap=None if seen is None else seen.shown,
        balance=balance,
    )


def models_error(derivatives: Released, n: int) -> float:
    """‖ΣR∂ψ/n‖ without its noise, at least 0."""
    squared = float(np.sum(derivatives.values**2)) - len(derivatives.values) * derivatives.sd**2
    return sqrt(max(squared, 0.0)) / n


def steep(cut: RowCut, *, skewed: bool) -> bool:
    """Whether tails of influences and of residuals fall fast enough. Where the noise hides how
    residuals fall, and a profile shows the response to be skewed, influences must fall twice as
    fast: at epsilon = 1 five of six intervals of wealth were wrong without.
    """
    if cut.bulk is None:
        return cut.alpha >= INFLUENCE_INDEX.value * (2 if skewed else 1)
    return cut.alpha >= INFLUENCE_INDEX.value and cut.bulk >= RESIDUAL_SLOPE.value


def _excess(cut: RowCut, found: Found) -> float:
    """E; without weights, where hardly any influence is long, as of a tail of index 2."""
    return cut.beyond * cut.length if found.histogram is None and not cut.excess else cut.excess


def _refusals(found: Found, allowance: float, rest: float, *, told: bool) -> list[str]:
    """Why there is no interval; empty where there is one."""
    said, seen = [], found.histogram
    if found.relative > WEIGHTS_NOISE.value or (seen is not None and not seen.sure):
        said.append(FEW)
    if seen is not None:
        share, noise = seen.beyond(found.records.target)
        if share > BEYOND_TRIM.value and clear(share, noise):
            said.append(POOR.format(share=min(share, 1.0)))
    if cut_decides(allowance, rest, told=told):
        said.append(HEAVY)
    return said


def _warnings(found: Found, balance: CovariateBalance | None) -> list[str]:
    models = (
        ("propensity model", found.records.propensity),
        ("outcome model", found.records.outcome),
    )
    said = [
        UNTOLD.format(which=which)
        for which, model in models
        if model is not None and not model.told
    ]
    if found.histogram is None:
        return said
    if balance is None:
        return [*said, NO_BALANCE]
    apart = [
        name
        for name, after, sd in zip(
            balance.terms, balance.after, balance.after_standard_errors, strict=True
        )
        if abs(after) - half_width(sd) > IMBALANCED.value
    ]
    return (
        [*said, IMBALANCE.format(limit=IMBALANCED.value, names=", ".join(apart))] if apart else said
    )


def _balance(found: Found, names: tuple[str, ...]) -> CovariateBalance | None:
    if found.balance is None or found.histogram is None:
        return None
    controls, treated = (max(each, 1.0) for each in found.histogram.numbers)
    t, c, wt, wc = found.balance.reshape(4, -1)
    _, S1, S0 = found.sums
    before, after = t / treated - c / controls, wt / S1 - wc / S0
    k = len(before)
    return CovariateBalance(
        terms=list(names),
        before=before.tolist(),
        before_standard_errors=[found.balance_sd * hypot(1 / treated, 1 / controls)] * k,
        after=after.tolist(),
        after_standard_errors=[found.balance_sd * hypot(1 / S1, 1 / S0)] * k,
    )
