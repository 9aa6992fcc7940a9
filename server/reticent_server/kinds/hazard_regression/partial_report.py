# SPDX-License-Identifier: Apache-2.0
"""From a fit of Cox's partial likelihood to the units of the data: slopes, and the baseline that
goes with them.

ln λ_j at the middle x₀ of the regressors is that of x̃ = 0: it moves with the slopes by
−ū_jᵀ(β̂ − β) (Breslow's estimate follows them), beside an error of its own, of the events in the
interval and of noise, so that its covariance with β is −ū_j cov β.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent_server.fitting import trust
from reticent_server.fitting.own_profile import profile_notes, spread_verdict
from reticent_server.fitting.report import back_transform, fit_result
from reticent_server.fitting.special_columns import special
from reticent_server.kinds.hazard_regression.long_tails import long_tails
from reticent_server.kinds.hazard_regression.partial_newton import PartialFit
from reticent_server.kinds.hazard_regression.proportionality import (
    Proportionality,
    Terms,
    proportionality,
)
from reticent_server.kinds.hazard_regression.report import Baseline, HazardFit, StrataBaselines
from reticent_server.kinds.hazard_regression.surv import Hazards

if TYPE_CHECKING:
    from reticent_server.kinds.hazard_regression.partial_plan import PartialPlan, PersonsGround

ESTIMAND = (
    "Logarithms of hazard ratios that maximise Cox's partial likelihood (Breslow's for ties) of "
    "all records in use, follow-up stopped at the cumulative hazard {stop:.3g}; the scores of the "
    "few records with the largest ones are cut, and intervals allow for it as far as noise tells "
    "their number: what a few persons at high risk who live long decide may lie outside"
)
WEIGHTED = (
    "Logarithms of hazard ratios that solve Cox's estimating equation with weights "
    "min(1, {radius:g}/|A(1, x)|^2), A the matrix of `weighting`, and follow-up that stops at the "
    "cumulative hazard {stop:g}"
)
LONG_TAILS = (
    "No intervals of terms with long tails: {names}. Cox's coefficient of such a term may rest on "
    "a few persons who cannot be distinguished from noise: ask for a logarithm of the column, or "
    'target="robust".'
)
_UNBOUNDED = 1e300  # squared radius at which every record weighs 1


def partial_fit_result(
    plan: "PartialPlan", found: PartialFit, ground: "PersonsGround"
) -> HazardFit:
    """The result. ground: that the fit began with, which a question may have released itself."""
    coding, fit, middle = found.coding, found.fit, ground.middle
    result = fit_result(
        coding,
        fit,
        level=plan.level,
        n=plan.facts.n,
        radius_squared=_UNBOUNDED,
        instead=trust.OF_MEANS if found.far is None else "",
    )
    terms = found.coding.design.terms
    long = [] if found.far is not None else long_tails(ground.coordinates, terms)
    if long:
        result |= trust.without_intervals(result, long)
        result["warnings"].append(LONG_TAILS.format(names=", ".join(long)))
    result["warnings"] += profile_notes(plan.own_profile)
    if not spread_verdict(plan.own_profile).intervals:
        result |= trust.without_intervals(result)
    if len(plan.asked.strata.labels) > 1:
        result |= trust.strata(found.noise).applied(result)
    weighting = _weighting(found)
    robust = found.far is not None
    G, V = len(plan.asked.strata.labels), np.array(result["covariance"])
    baselines = [_baseline(coding.design.names, _stratum(found, g, G), V, middle) for g in range(G)]
    said = (WEIGHTED if robust else ESTIMAND).format(
        radius=weighting["radius_squared"], stop=found.stop
    )
    return HazardFit(
        **result | {"weighting": weighting},
        scale=None,
        tuning=None,
        steps=plan.budget.fit.steps,
        shares=plan.shares,
        estimand=said + _stratified(plan.asked) + special(plan.asked.design),
        cuts=plan.asked.cuts,
        stop=found.stop,
        baseline=baselines[0],
        strata=_strata(plan.asked, baselines),
        proportionality=_proportionality(found, result, plan.level),
    )


def _proportionality(
    found: PartialFit, result: dict[str, Any], level: float
) -> Proportionality | None:
    """At the coefficients where the scores by bins were taken: those of the fit, less its bend."""
    if found.binned is None:
        return None
    fit, back = found.fit, back_transform(found.coding).matrix
    bend = np.zeros(len(back)) if fit.bend is None else back @ fit.bend
    terms = Terms(list(result["terms"]), np.array(result["estimable"], dtype=bool))
    at = np.array(result["coefficients"]) - bend
    return proportionality(found.binned, back @ fit.transform.T, at, terms, level)


def _stratum(found: PartialFit, g: int, strata: int) -> PartialFit:
    """With the baseline of stratum g alone."""
    J = len(found.hazards) // strata
    here = slice(g * J, (g + 1) * J)
    return replace(
        found, hazards=found.hazards[here], errors=found.errors[here], means=found.means[here]
    )


def _strata(asked: Hazards, baselines: list[Baseline]) -> StrataBaselines | None:
    """None without strata."""
    column = asked.strata.column
    return (
        None if column is None else StrataBaselines(column, asked.strata.labels, tuple(baselines))
    )


def _stratified(asked: Hazards) -> str:
    column = asked.strata.column
    return "" if column is None else f"; a baseline hazard of its own for each level of {column}"


def _weighting(found: PartialFit) -> dict[str, Any]:
    """Of a person's weight, by the rows (k, k + 1) of A; R² without bound where all weigh 1."""
    coding, far = found.coding, found.far
    A = found.fit.transform if far is None else far.matrix
    middle = np.zeros(len(A)) if far is None else far.centre
    W = A / coding.scales
    matrix = np.column_stack([-W @ coding.centres - middle, W])
    radius = _UNBOUNDED if far is None else far.radius_squared
    return {"matrix": matrix.tolist(), "radius_squared": radius}


def _baseline(
    names: tuple[str, ...], found: PartialFit, covariance: np.ndarray, middle: float
) -> Baseline:
    coding = found.coding
    means = found.means * coding.scales  # in the units of the terms, less their centres
    own = np.diag(found.errors**2) + means @ covariance @ means.T
    return Baseline(
        hazards=tuple((found.hazards * np.exp(-middle)).tolist()),
        log_standard_errors=tuple(np.sqrt(np.diag(own)).tolist()),
        reference=dict(zip(names, coding.centres.tolist(), strict=True)),
        covariance=np.column_stack([own, -means @ covariance]).tolist(),
    )
