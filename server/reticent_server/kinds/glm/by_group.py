# SPDX-License-Identifier: Apache-2.0
"""A generalised linear model of each group (fitting.group_fits: proof and charge)."""

from typing import Any

from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import GroupFitsPlan, plan_group_fits
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.kinds.glm.plan import DISPERSED_ONLY, NO_LINK, asked_model
from reticent_server.kinds.glm.query import GAUSSIAN, Glm
from reticent_server.kinds.shared.by import formula_by
from reticent_server.kinds.shared.linear.by_group import plan_linear_regression_by
from reticent_server.kinds.shared.linear.query import LinearRegression


def plan_glm_by(facts: DatasetFacts, query: Glm, by: str, rho: int) -> GroupFitsPlan[Any]:
    """The models of all groups at `rho` (RHO_UNITS); a Gaussian response is a linear regression. Raises InvalidQuery."""
    if query.mechanism != "newton":
        raise InvalidQuery("by is for the newton mechanism only.")
    no_calibration(query.calibration)
    if query.family != GAUSSIAN:
        design, strata = formula_by(facts, query.formula, query.where, by)
        model = asked_model(query)
        return plan_group_fits(facts, design, strata, model, query.confidence_level, rho)
    if query.link is not None:
        raise InvalidQuery(NO_LINK)
    if query.dispersion is not None:
        raise InvalidQuery(DISPERSED_ONLY)
    linear = LinearRegression(
        query.formula,
        query.where,
        tuning=query.tuning,
        confidence_level=query.confidence_level,
    )
    return plan_linear_regression_by(facts, linear, by, rho)
