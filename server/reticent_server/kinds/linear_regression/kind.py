# SPDX-License-Identifier: Apache-2.0
"""The kind `linear_regression`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import GroupFits
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.fitting.results import RegressionResult
from reticent_server.formula import parse_formula
from reticent_server.kinds.base import Kind
from reticent_server.kinds.linear_regression.by_group import plan_linear_regression_by
from reticent_server.kinds.linear_regression.gradient_descent import plan_gradient_descent
from reticent_server.kinds.linear_regression.influence import plan_influence_regression
from reticent_server.kinds.linear_regression.plan import plan_linear_regression
from reticent_server.kinds.linear_regression.query import LinearRegression
from reticent_server.kinds.linear_regression.statistics import plan_linear_statistics
from reticent_server.kinds.shared.columns import sufficient


def _plan(facts: DatasetFacts, query: LinearRegression, offer: PrivacyCost) -> Planned:
    if query.fit_statistics:
        return plan_linear_statistics(facts, query, offer.rho)
    if query.by is not None:
        return plan_linear_regression_by(facts, query, query.by, offer.rho)
    design = parse_formula(query.formula, facts.schema, query.where)
    if query.mechanism != "newton" and (query.ridge is not None or query.loss != "huber"):
        raise InvalidQuery("A ridge and the biweight are for the newton mechanism only.")
    if query.mechanism == "influence":
        return plan_influence_regression(facts, design, query, sufficient(offer))
    no_calibration(query.calibration)
    newton = query.mechanism == "newton"
    plan = plan_linear_regression if newton else plan_gradient_descent
    return plan(facts, design, query, offer.rho)


KIND = Kind(
    query=LinearRegression,
    plan=_plan,
    result=RegressionResult | GroupFits,
    examples=(
        LinearRegression("y ~ x"),
        LinearRegression("y ~ x + C(g)", where="x > 0"),
        LinearRegression("y ~ x", loss="tukey"),
        LinearRegression("y ~ x", ridge=2.0),
        LinearRegression("y ~ x", by="g"),
        LinearRegression("y ~ x", fit_statistics=True),
        LinearRegression("y ~ x", mechanism="gradient_descent"),
        LinearRegression("y ~ x", mechanism="influence"),
    ),
    page="linear-regression",
)
