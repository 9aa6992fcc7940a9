# SPDX-License-Identifier: Apache-2.0
"""From a fit of levels in standardised units to what a reply says."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import block_diag

from reticent_server.domain.design import Design
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting import trust
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.empty_levels import with_left_out
from reticent_server.fitting.own_profile import profile_notes, spread_verdict
from reticent_server.fitting.report import (
    back_transform,
    intervals,
    p_values,
    roots,
    weighting,
)
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.special_columns import special
from reticent_server.kinds.glm.categories.law import CategoryLaw
from reticent_server.kinds.glm.categories.newton import CategoryFit

if TYPE_CHECKING:
    from reticent_server.kinds.glm.categories.plan import CategoryGround, CategoryPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryResult(RegressionResult):
    """A fit of a response with several `levels`, in their order. multinomial: terms "level: term"
    are logarithms of odds of that level against the first; ordinal: slopes, then thresholds
    "low|high", logit P(y ≤ low) = threshold − xᵀslopes.
    """

    response: str
    levels: tuple[str, ...]


def in_units(
    coding: Coding, law: CategoryLaw, theta: FloatArray, spacings: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The reported coefficients (D,) of Θ (P, q) of x̃ and λ, and their derivative (D, D) by (Θ row
    by row, λ).
    """
    L = back_transform(coding).matrix
    beta, change = law.reported(theta @ L.T, spacings)
    whole = block_diag(np.kron(np.eye(law.predictors), L), np.eye(law.spacings))
    return beta, np.asarray(change @ whole)


def category_result(
    plan: "CategoryPlan", ground: "CategoryGround", fit: CategoryFit
) -> CategoryResult:
    """The result."""
    coding, law, left_out = ground.coding, ground.law, ground.left_out
    beta, A = in_units(coding, law, fit.theta, fit.spacings)
    privacy, sampling = (np.asarray(A @ C @ A.T) for C in (fit.privacy, fit.sampling))
    directions = fit.directions.mapped(A)
    flags = trust.coefficients(directions.flags, roots(privacy), roots(sampling))
    ok, se = flags.estimable, roots(privacy + sampling)
    names = law.names(ground.axis.levels, coding.design.names)
    said = [
        *flags.warnings(names, "too rare a level"),
        *trust.separated(fit.length, "levels").sentences,
    ]
    R2 = plan.sizes.of(coding.size).radius_squared
    said += profile_notes(plan.own_profile)
    ok = ok & spread_verdict(plan.own_profile).intervals
    result: dict[str, Any] = dict(
        terms=names,
        coefficients=beta.tolist(),
        standard_errors=se.tolist(),
        covariance=(privacy + sampling).tolist(),
        confidence_level=plan.level,
        confidence_intervals=intervals(beta, se, plan.level, ok),
        p_values=p_values(beta, se, ok),
        privacy_standard_errors=roots(privacy).tolist(),
        estimable=[bool(x) for x in ok],
        directions=directions.shown,
        weighting=weighting(coding, fit.transform, R2),
        scale=None,
        tuning=None,
        steps=plan.budget.steps,
        shares=plan.shares,
        estimand=f"{law.words}; weights min(1, {R2:g}/|Ax|^2) with the matrix A of `weighting`"
        + special(coding.design),
        n=plan.facts.n,
        warnings=said,
        family=law.name,
        response=plan.axis.column,
        levels=ground.axis.levels,
        **_records(plan.design, fit),
    )
    every = coding.design.names if left_out is None else left_out.names
    return CategoryResult(**with_left_out(result, left_out, law.names(ground.axis.levels, every)))


def _records(design: Design, fit: CategoryFit) -> dict[str, Any]:
    if design.weight is not None:
        return {"sum_of_weights": fit.count * design.weight.largest}
    return {"records_in_use": fit.count} if design.masked else {}
