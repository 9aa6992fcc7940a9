# SPDX-License-Identifier: Apache-2.0
"""A linear regression with R² and the residual standard deviation (fitting.fit_statistics)."""

from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.fit_statistics import StatisticsPlan, statistics_part
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.formula import parse_formula
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.linear.response import PublicResponse


def plan_linear_statistics(
    facts: DatasetFacts, query: LinearRegression, rho: int
) -> StatisticsPlan[PublicResponse]:
    """The fit and its statistics at `rho` (RHO_UNITS). Raises InvalidQuery."""
    if query.mechanism != "newton" or query.by is not None:
        raise InvalidQuery("fit_statistics is for the newton mechanism, without by.")
    if query.ridge is not None:
        raise InvalidQuery("fit_statistics is for fits without a ridge.")
    no_calibration(query.calibration)
    design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
    if not design.intercept:
        raise InvalidQuery("fit_statistics needs a formula with an intercept.")
    part = statistics_part(facts, rho)
    plan = plan_linear_regression(facts, design, query, rho - part.rho)
    return StatisticsPlan(plan, part, whole=False)
