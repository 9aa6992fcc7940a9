# SPDX-License-Identifier: Apache-2.0
"""A linear regression of each group (fitting.group_fits: proof and charge)."""

from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import GroupFitsPlan, plan_group_fits
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.kinds.shared.by import formula_by
from reticent_server.kinds.shared.linear.loss import asked_loss
from reticent_server.kinds.shared.linear.plan import LinearModel
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.linear.response import PublicResponse


def plan_linear_regression_by(
    facts: DatasetFacts, query: LinearRegression, by: str, rho: int
) -> GroupFitsPlan[PublicResponse]:
    """The regressions of all groups at `rho` (RHO_UNITS). Raises InvalidQuery."""
    if query.mechanism != "newton":
        raise InvalidQuery("by is for the newton mechanism only.")
    no_calibration(query.calibration)
    design, strata = formula_by(facts, query.formula, query.where, by)
    model = LinearModel(asked_loss(query), query.ridge)
    return plan_group_fits(facts, design, strata, model, query.confidence_level, rho)
